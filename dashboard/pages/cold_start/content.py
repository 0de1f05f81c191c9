"""What the page Cold start is drawn from: bars of phases, four figures, and a row per case."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dashboard.charts.style import PreparedChart
from dashboard.links.links import Link
from dashboard.pages.cold_start import charts
from dashboard.read.data import filters_of, read_cases, read_cold_start
from dashboard.read.shaping import asides, with_caches, with_strategies
from dashboard.read.snapshots import Snapshot, cached
from db.metrics.groups import row_dicts
from db.records.strategies import EAGER, sort_key
from db.wording import units
from db.wording.marks import bound_cell

TITLES = {
    "first": "Time to first result",
    "cost": "Compile cost",
    "interval": "95 % interval",
    "graphs": "Graphs",
    "breaks": "Graph breaks",
    "recompiles": "Recompiles",
    "trials": "Trials (n)",
}
_OF_CASE = [
    *("workload_label", "strategy", "cache", "time_to_first_result_ns", "compile_cost_ns"),
    *("compile_cost_low_ns", "compile_cost_high_ns", "graphs", "graph_breaks", "recompiles"),
    *("counted_trials", "bound"),
]


@dataclass(frozen=True)
class PageContent:
    """What the page is drawn from: bars and their ends, the cases' figures, and what has none."""

    chart: PreparedChart
    figures: list[tuple[str, str, str]]
    cases: pd.DataFrame
    beside: list[str]


@cached
def workloads(snapshot: Snapshot, link: Link) -> tuple[list[str], frozenset[str]]:
    """The workloads to choose from, and the cache states that were measured."""
    cases = read_cases(snapshot, filters_of(link))
    return sorted(set(cases["workload_label"])), frozenset(map(str, cases["cache"]))


@cached
def page_content(snapshot: Snapshot, link: Link) -> PageContent:
    cases = with_strategies(read_cases(snapshot, filters_of(link)), link.strategy)
    if link.focus in set(cases["workload_label"]):
        cases = cases[cases["workload_label"] == link.focus]
    cases = with_caches(cases, link.cache)
    bars = charts.bars(cases, read_cold_start(snapshot, filters_of(link)))
    left_out = [f"{bars.left_out} The table has all."]
    return PageContent(
        chart=PreparedChart(
            finding=charts.finding(bars.rows),
            spec=None if bars.rows.empty else charts.spec(bars.cases, bars.phases),
            frames={"main": bars.rows, "totals": charts.totals(bars.rows)},
            notes=left_out if bars.left_out else [],
        ),
        figures=_figures(cases),
        cases=_case_rows(cases),
        beside=[str(aside) for aside in asides(cases)],
    )


def _figures(cases: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Title, text and explanation of the cards."""
    figures = cases[["time_to_first_result_ns", "compile_cost_ns", "graph_breaks"]]
    is_eager = cases["strategy"] == EAGER.name
    compiled, eager = figures[~is_eager], figures[is_eager]
    return [
        (
            "First result, compiled",
            units.duration(compiled["time_to_first_result_ns"].median()),
            "Median over the compiled cases shown, from spawning the process to its first result.",
        ),
        (
            "First result, eager",
            units.duration(eager["time_to_first_result_ns"].median()),
            "Median over the eager cases shown.",
        ),
        (
            "Compile cost",
            units.duration(compiled["compile_cost_ns"].median()),
            "Median over the compiled cases shown: calls until steady, minus as many steady calls.",
        ),
        (
            "Graph breaks",
            units.count(compiled["graph_breaks"].sum(min_count=1)),
            "Sum over the compiled cases shown.",
        ),
    ]


def _case_rows(cases: pd.DataFrame) -> pd.DataFrame:
    """A row per case, its times as texts. Eager compiles nothing and so has no compile cost."""
    ordered = sorted(
        row_dicts(cases[_OF_CASE]), key=lambda row: (row["workload_label"], sort_key(row["strategy"]))
    )
    rows = []
    for case in ordered:
        eager = case["strategy"] == EAGER.name
        ends = (case["compile_cost_low_ns"], case["compile_cost_high_ns"])
        rows.append(
            {
                "workload": case["workload_label"],
                "strategy": case["strategy"],
                "bound": bound_cell(case["bound"]),
                "cache": units.MISSING if eager else case["cache"],
                "first": units.duration(case["time_to_first_result_ns"]),
                "cost": units.MISSING if eager else units.duration(case["compile_cost_ns"]),
                "interval": units.MISSING
                if eager
                else units.interval(*ends, units.duration, trials=case["counted_trials"]),
                "graphs": units.count(case["graphs"]),
                "breaks": units.count(case["graph_breaks"]),
                "recompiles": units.count(case["recompiles"]),
                "trials": units.count(case["counted_trials"]),
            }
        )
    return pd.DataFrame(rows)
