"""Cold starts as a chart: what cases spend from spawning the process to their first result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from compilewatch.dashboard.charts import cold_start as charts
from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts.parts import Chart
from compilewatch.dashboard.read.data import filters_of, read_cold_start
from compilewatch.db import units
from compilewatch.db.metrics.geomean import geomean
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.strategies import EAGER, sort_key
from compilewatch.db.records.trial import CacheState

_READING = (
    "Means over passed trials, in the phases' shares, from spawning the process to its first result. import: "
    "interpreter, torch, libraries, the model. trace: dynamo, AOTAutograd. lower: inductor, the backward "
    "pass. kernels: compiling and trying them. first run: the rest."
)


def starts_chart(link: Link, cases: pd.DataFrame) -> Chart:
    """A row for each model of `cases`, of a single one for each of its strategies."""
    rows = charts.frame_of(cases, read_cold_start(filters_of(link)))
    known = _known(cases)
    found = charts.drawn(rows, known, _named(cases, known))
    notes = [f"{found.left_out} The table has all."] if found.left_out else []
    content = ChartContent(charts.finding(found), notes=notes)
    if found.rows:
        content = ChartContent(
            content.finding,
            charts.spec(found.rows, found.starts, found.groups, float(f"{found.ends['seconds'].max():.4g}")),
            {"main": found.segments, "ends": found.ends, "names": found.names},
            notes,
        )
    one = "strategy" if cases["workload_label"].nunique() == 1 else "model"
    return Chart(
        "cold-start-bars",
        f"Phases from process start to first result, a row a {one}, cold above warm",
        content,
        _READING,
    )


def _named(cases: pd.DataFrame, known: dict[tuple[str, str, str], float]) -> dict[tuple[str, str], str]:
    """The rows of the chart by workload and strategy, whatever the cache held. Of several models each has the
    strategy that was started both ways and gains most, of none started so the one that gains most; eager's
    time stands beside it.
    """
    by_model: dict[str, list[dict[str, Any]]] = {}
    for case in row_dicts(cases[["workload_label", "strategy", "cache", "speedup"]]):
        by_model.setdefault(case["workload_label"], []).append(case)
    if len(by_model) == 1:
        ((label, mine),) = by_model.items()
        bases = {charts.base_of(case["strategy"], case["cache"]) for case in mine}
        return {(label, base): base for base in bases}
    named = {}
    for label, mine in by_model.items():
        base = _leading(mine)
        eager = known.get((label, EAGER.name, CacheState.NONE.value))
        beside = f" (eager {charts.seconds_text(eager)})" if eager and base != EAGER.name else ""
        named[label, base] = f"{label} · {base}{beside}"
    return named


def _leading(cases: list[dict[str, Any]]) -> str:
    gains: dict[str, float] = {}
    ways: dict[str, set[str]] = {}
    for case in sorted(cases, key=lambda case: sort_key(case["strategy"])):
        base = charts.base_of(case["strategy"], case["cache"])
        ways.setdefault(base, set()).add(str(case["cache"]))
        if case["cache"] != CacheState.WARM and not pd.isna(case["speedup"]):
            gains[base] = float(case["speedup"])
    both = {CacheState.COLD.value, CacheState.WARM.value}
    return max(ways, key=lambda base: (base != EAGER.name, both <= ways[base], gains.get(base, 0.0)))


def largest_phases(link: Link, cases: pd.DataFrame) -> dict[tuple[str, str, str], str]:
    """The phase that takes most of the cold start of each of `cases` whose phases are known, with its share:
    "kernel compile, 58 %", by workload, strategy and cache state.
    """
    rows = charts.frame_of(cases, read_cold_start(filters_of(link)))
    largest = rows.sort_values("share").drop_duplicates(["workload", "strategy", "cache"], keep="last")
    return {
        (row["workload"], row["strategy"], row["cache"]): f"{row['phase']}, {units.percent(row['share'])}"
        for row in row_dicts(largest)
    }


def _known(cases: pd.DataFrame) -> dict[tuple[str, str, str], float]:
    """Time to first result in ns by workload, strategy and cache state, where it is known."""
    first = cases[cases["time_to_first_result_ns"].notna()]
    keys = zip(first["workload_label"], first["strategy"], first["cache"].astype(str), strict=True)
    return dict(zip(keys, first["time_to_first_result_ns"].astype(float), strict=True))


_OF_STARTS = [
    *("workload_label", "strategy", "cache", "time_to_first_result_ns", "compile_cost_ns", "graph_breaks")
]


@dataclass(frozen=True)
class MeanStarts:
    """Of cases that were started with an empty cache and with a filled one those of both ways, else those of
    the empty one: what each way took on the mean, in ns.
    """

    cold: pd.DataFrame
    cold_ns: float | None
    filled_ns: float | None


def mean_starts(cases: pd.DataFrame) -> MeanStarts:
    """Cold and warm are different questions: no mean is over both."""
    first, cache = cases["time_to_first_result_ns"], cases["cache"].astype(str)
    # Their strategies whatever the cache held.
    bases = list(map(charts.base_of, cases["strategy"], cache))
    known = cases[_OF_STARTS].assign(base=bases)
    known = known[first.notna() & (cases["strategy"] != EAGER.name)]
    cold = known[known["cache"] == CacheState.COLD]
    filled = known[known["cache"] == CacheState.WARM]
    both = cold.merge(filled, on=["workload_label", "base"], suffixes=("", "_filled"))
    if both.empty:
        return MeanStarts(cold, geomean(cold["time_to_first_result_ns"]), None)
    return MeanStarts(
        both, geomean(both["time_to_first_result_ns"]), geomean(both["time_to_first_result_ns_filled"])
    )
