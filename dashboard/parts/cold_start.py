"""Cold starts as a chart: what cases spend from spawning the process to their first result."""

from __future__ import annotations

import pandas as pd

from compilewatch.dashboard.charts import cold_start as charts
from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts.parts import Chart
from compilewatch.dashboard.read.data import filters_of, read_cold_start
from compilewatch.db import units
from compilewatch.db.metrics.groups import row_dicts


def starts_chart(link: Link, cases: pd.DataFrame) -> Chart:
    """A stacked bar for each of `cases`, of many for the slowest."""
    bars = charts.bars(cases, read_cold_start(filters_of(link)))
    ends = charts.totals(bars.rows, _known(cases))
    rest = f"{bars.left_out} The table has all. Choose a workload to see its own."
    content = ChartContent(
        finding=charts.finding(bars.rows, ends),
        spec=None if bars.rows.empty else charts.spec(bars.cases, bars.phases),
        frames={"main": bars.rows, "totals": ends},
        notes=[rest] if bars.left_out else [],
    )
    return Chart(
        "cold-start-bars",
        "Phases from process start to first result, one stacked bar per case",
        content,
        "Means over passed trials, in the phases' shares, from spawning the process to its first result.",
    )


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
