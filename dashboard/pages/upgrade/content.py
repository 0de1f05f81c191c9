"""The tables of a comparison: every figure of one case, compile cost and break-even, what passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from dashboard.links.links import Link
from dashboard.read.data import (
    filters_of,
    read_builds,
    read_choices,
    read_measured_builds,
    read_series_by_build,
)
from dashboard.read.snapshots import Snapshot
from dashboard.render import verdict_words
from db.judge.compare.sides import plain_settings
from db.judge.results import Comparison, LeftOut, Row
from db.judge.vocabulary import COUNTED_METRICS, Metric, Verdict
from db.queries.filters import Filters
from db.records.strategies import sort_key
from db.wording import verdicts as wording
from db.wording.marks import bound_cell, bound_word
from db.wording.metrics import METRICS

CASE_COLUMNS = (
    "metric",
    "base",
    "head",
    "change",
    "interval",
    "q",
    "verdict",
    "moved",
    "trials",
    "reason",
)
_SHIFT = (Metric.COMPILE_COST, Metric.BREAK_EVEN)


def row_cells(row: Row) -> dict[str, str]:
    """One verdict as texts."""
    return {
        "metric": METRICS[row.metric].name,
        "base": verdict_words.figure(row.metric, row.base),
        "head": verdict_words.figure(row.metric, row.head),
        "change": verdict_words.change_beside(row),
        "interval": verdict_words.interval(row),
        "q": verdict_words.q_value(row),
        "verdict": wording.row_verdict(row),
        "moved": verdict_words.moved(row),
        "bound": bound_cell(row.bound),
        "trials": verdict_words.side_sizes(row),
        "reason": row.reason,
    }


def case_title(row: Row) -> str:
    """Workload and strategy of a verdict, and what bounds the case: "mlp with default, host-bound"."""
    return ", ".join(filter(None, (f"{row.workload} with {row.strategy}", bound_word(row.bound))))


def case_table(rows: Sequence[Row]) -> pd.DataFrame:
    """One row per metric of one case."""
    return pd.DataFrame([row_cells(row) for row in rows], columns=list(CASE_COLUMNS))


def left_out_table(left_out: Sequence[LeftOut]) -> pd.DataFrame:
    """One row per case that was not compared, with its reason, the most common reasons first."""
    common = Counter((case.verdict, case.reason) for case in left_out)
    ordered = sorted(
        left_out,
        key=lambda case: (-common[case.verdict, case.reason], case.reason, case.workload, case.strategy),
    )
    return pd.DataFrame(
        [
            (verdict_words.left_out_label(case), case.strategy, case.verdict.value, case.reason)
            for case in ordered
        ],
        columns=["workload", "strategy", "verdict", "reason"],
    )


def shift_table(comparison: Comparison, labels: Mapping[str, str]) -> pd.DataFrame:
    """One row per compiled case: compile cost and break-even before and after, the worst shift first."""
    by_case: dict[tuple[str, str], dict[Metric, Row]] = {}
    for row in comparison.rows:
        if row.metric in _SHIFT:
            by_case.setdefault((verdict_words.workload_label(row.case, labels), row.strategy), {})[
                row.metric
            ] = row
    ordered = sorted(by_case.items(), key=lambda item: (_worst(item[1]), item[0][0], sort_key(item[0][1])))
    return pd.DataFrame(
        [
            {"workload": workload, "strategy": strategy, "bound": _bound(found), **_shift_cells(found)}
            for (workload, strategy), found in ordered
        ]
    )


def _worst(found: Mapping[Metric, Row]) -> int:
    return min(wording.WORST_FIRST.index(row.verdict) for row in found.values())


def _bound(found: Mapping[Metric, Row]) -> str:
    return bound_cell(next(iter(found.values())).bound)


def _shift_cells(found: Mapping[Metric, Row]) -> dict[str, str | None]:
    cells: dict[str, str | None] = {}
    for metric in _SHIFT:
        row = found.get(metric)
        cells |= {
            f"{metric.value}_from_to": None
            if row is None
            else _from_to(*(verdict_words.figure(metric, value) for value in (row.base, row.head))),
            f"{metric.value}_change": None if row is None else verdict_words.change_beside(row),
            f"{metric.value}_verdict": None if row is None else wording.row_verdict(row),
        }
    return cells


def _from_to(base: str, head: str) -> str:
    """Both values, a unit that they share named once: "1,719 → 3,069 steps"."""
    number, _, unit = base.partition(" ")
    shared = unit and head.endswith(f" {unit}")
    return f"{number if shared else base} → {head}"


def count_changes(comparison: Comparison, labels: Mapping[str, str]) -> pd.DataFrame:
    """Cases that pass no more or again, or whose graph breaks or recompiles changed, the worst first."""
    moved = [
        row
        for row in comparison.rows
        if row.metric in COUNTED_METRICS and row.verdict is not Verdict.UNCHANGED
    ]
    return pd.DataFrame(
        [
            {
                "workload": verdict_words.workload_label(row.case, labels),
                "strategy": row.strategy,
                **row_cells(row),
            }
            for row in wording.worst_first(moved)
        ]
    )


def failing_on_both(comparison: Comparison, labels: Mapping[str, str]) -> list[str]:
    """Cases that fail on either side alike: no change, and yet no pass."""
    return [
        f"{verdict_words.workload_label(row.case, labels)} with {row.strategy}: "
        f"{verdict_words.figure(row.metric, row.head)}"
        for row in comparison.rows
        if row.metric is Metric.NUMERICS and row.verdict is Verdict.UNCHANGED and row.head != "pass"
    ]


# Which two builds the page Upgrade sets against each other where its link names none or one.

_NEWEST_VERSIONS = 12
_RUNS_OF_BUILD = 3


def with_builds(snapshot: Snapshot, link: Link) -> Link:
    """Both builds named. Where the link names none, the head is the newest in order of versions that has a
    comparable case with an older one, and the base of these the one with most, the newest among equals. One
    that is named stays. Imported builds count where fewer than two were measured. `link` as it is where its
    filters let through fewer than two builds.
    """
    filters = filters_of(link)
    builds, measured = read_builds(snapshot, filters), read_measured_builds(snapshot, filters)
    if (link.base and link.head) or len(builds) < 2:
        return link
    pool = measured if len(measured) > 1 else builds
    named = [key for key in (link.base, link.head) if key]
    known = [key for key in read_choices(snapshot).builds if key in {*pool, *named}]
    newest_first = [*reversed(known)]
    shown = list(dict.fromkeys([*newest_first[:_NEWEST_VERSIONS], *named]))
    matched = _matches(snapshot, filters, tuple(shown))
    pairs = [
        (base, head)
        for head in ([link.head] if link.head else shown)
        for base in ([link.base] if link.base else shown)
        if base != head and (named or known.index(base) < known.index(head))
    ]

    def preference(pair: tuple[str, str]) -> tuple[int, int, int, int, int]:
        base, head = map(known.index, pair)
        return matched(*pair) > 0, base < head, head, matched(*pair), base

    base, head = max(pairs, key=preference, default=(newest_first[1], newest_first[0]))
    return replace(link, base=base, head=head)


def _matches(snapshot: Snapshot, filters: Filters, builds: tuple[str, ...]) -> Callable[[str, str], int]:
    """How many cases of the newest runs two builds have in common; none where their settings differ."""
    series = read_series_by_build(snapshot, filters, builds, _RUNS_OF_BUILD)
    rows = read_choices(snapshot).build_rows
    settings = {key: plain_settings(rows[key]["settings"]) for key in builds}
    return lambda base, head: len(series[base] & series[head]) if settings[base] == settings[head] else 0
