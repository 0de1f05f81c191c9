"""What the page Cold start says: four figures, bars of phases, and a row per case."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from dashboard.charts.style import ChartContent
from dashboard.links.links import Link
from dashboard.pages.cold_start import charts
from dashboard.parts import parts
from dashboard.parts.cases import CASE, NO_CASE, cases_of, floors_of, of_cases
from dashboard.parts.parts import (
    BOUND,
    LEFT_OUT,
    TRIALS,
    Chart,
    Column,
    Figure,
    Figures,
    PageContent,
    Part,
)
from dashboard.read.data import filters_of, read_cases, read_cold_start, read_jobs
from dashboard.read.shaping import asides
from dashboard.read.snapshots import Snapshot, cached
from db import units
from db.metrics.groups import row_dicts
from db.records.marks import bound_cell
from db.records.strategies import EAGER, sort_key

_COLUMNS = {
    **CASE,
    **BOUND,
    "cache": Column("Cache state"),
    **parts.numbers(
        {
            "first": "Time to first result",
            "cost": "Compile cost",
            "interval": "95 % interval",
            "graphs": "Graphs",
            "breaks": "Graph breaks",
            "recompiles": "Recompiles",
        }
    ),
    **TRIALS,
}
_PRODUCTION_COLUMNS = {
    "workload": Column("Job", pinned=True),
    "strategy": Column("Strategy"),
    "machine": Column("Machine"),
    "torch": Column("torch"),
    "started": Column("Started"),
    **parts.numbers(
        {
            "first": "Time to first step",
            "cost": "Compile cost",
            "cpu": "CPU time",
            "breaks": "Graph breaks",
            "recompiles": "Recompiles",
            "processes": "Processes",
        }
    ),
}
MOST_JOBS = 50
"""Series of jobs at most in the table, those that ran last."""
_OF_CASE = [
    *("workload_label", "strategy", "cache", "time_to_first_result_ns", "compile_cost_ns"),
    *("compile_cost_low_ns", "compile_cost_high_ns", "graphs", "graph_breaks", "recompiles"),
    *("counted_trials", "bound"),
]


@cached
def workloads(snapshot: Snapshot, link: Link) -> tuple[list[str], frozenset[str]]:
    """The workloads to choose from, and the cache states that were measured."""
    cases = read_cases(snapshot, filters_of(link))
    return sorted(set(cases["workload_label"])), frozenset(map(str, cases["cache"]))


@cached
def page(snapshot: Snapshot, link: Link) -> PageContent:
    """One workload, or all where `link` names none that is there."""
    cases, floors = cases_of(snapshot, link), floors_of(snapshot, link.machine)
    if link.focus in set(cases["workload_label"]):
        cases = cases[cases["workload_label"] == link.focus]
    else:
        link = replace(link, focus=None)
    if cases.empty:
        return of_cases((NO_CASE,), cases, link, floors)
    bars = charts.bars(cases, read_cold_start(snapshot, filters_of(link)))
    ends = charts.totals(bars.rows, _known(cases))
    rest = f"{bars.left_out} The table has all. Choose a workload to see its own."
    chart = ChartContent(
        finding=charts.finding(bars.rows, ends),
        spec=None if bars.rows.empty else charts.spec(bars.cases, bars.phases),
        frames={"main": bars.rows, "totals": ends},
        notes=[rest] if bars.left_out else [],
    )
    shown: tuple[Part, ...] = (
        *([] if bars.rows.empty else [_figures(cases)]),
        Chart(
            "cold-start-bars",
            "Phases from process start to first result, one stacked bar per case",
            chart,
            "Medians over passed trials, phase by phase, from spawning the process to its first result.",
        ),
        *parts.table(
            "cold-start-table",
            "Time to first result, compile cost, graphs, graph breaks and recompiles of every case",
            _case_rows(cases),
            _COLUMNS,
            title="From start to steady",
        ),
        *_production(snapshot),
        *parts.listed(LEFT_OUT, [str(aside) for aside in asides(cases)]),
    )
    return of_cases(shown, cases, link, floors)


def _production(snapshot: Snapshot) -> tuple[Part, ...]:
    """The newest start of each job that recorded itself, beside what the benchmark measured."""
    jobs = read_jobs(snapshot, MOST_JOBS)
    rows = [
        {
            "workload": case["workload"],
            "strategy": case["strategy"],
            "machine": case["machine"],
            "torch": case["torch"],
            "started": units.moment(case["last_started_at"]),
            "first": charts.seconds_text(case["time_to_first_result_ns"]),
            "cost": charts.seconds_text(case["compile_cost_ns"]),
            "cpu": charts.seconds_text(case["process_tree_cpu_ns"]),
            "breaks": units.count(case["graph_breaks"]),
            "recompiles": units.count(case["recompiles"]),
            "processes": units.count(case["trials"]),
        }
        for case in row_dicts(jobs.sort_values("last_started_at", ascending=False))
    ]
    return parts.table(
        "production-table",
        "Time to first step, compile cost, graph breaks and recompiles of the newest run of each job",
        pd.DataFrame(rows),
        _PRODUCTION_COLUMNS,
        title="In production",
    )


def _known(cases: pd.DataFrame) -> dict[tuple[str, str, str], float]:
    """Time to first result in ns by workload, strategy and cache state, where it is known."""
    first = cases[cases["time_to_first_result_ns"].notna()]
    keys = zip(first["workload_label"], first["strategy"], first["cache"].astype(str), strict=True)
    return dict(zip(keys, first["time_to_first_result_ns"].astype(float), strict=True))


def _figures(cases: pd.DataFrame) -> Figures:
    figures = cases[["time_to_first_result_ns", "compile_cost_ns", "graph_breaks"]]
    is_eager = cases["strategy"] == EAGER.name
    compiled, eager = figures[~is_eager], figures[is_eager]
    return Figures(
        (
            Figure(
                "First result, compiled",
                charts.seconds_text(compiled["time_to_first_result_ns"].median()),
                "Median over the compiled cases shown, from spawning the process to its first result.",
            ),
            Figure(
                "First result, eager",
                charts.seconds_text(eager["time_to_first_result_ns"].median()),
                "Median over the eager cases shown.",
            ),
            Figure(
                "Compile cost",
                charts.seconds_text(compiled["compile_cost_ns"].median()),
                "Median over the compiled cases shown: calls until steady, minus as many steady calls.",
            ),
            Figure(
                "Graph breaks",
                units.count(compiled["graph_breaks"].sum(min_count=1)),
                "Sum over the compiled cases shown.",
            ),
        )
    )


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
                "first": charts.seconds_text(case["time_to_first_result_ns"]),
                "cost": units.MISSING if eager else charts.seconds_text(case["compile_cost_ns"]),
                "interval": units.MISSING
                if eager
                else units.interval(*ends, charts.seconds_text, trials=case["counted_trials"]),
                "graphs": units.count(case["graphs"]),
                "breaks": units.count(case["graph_breaks"]),
                "recompiles": units.count(case["recompiles"]),
                "trials": units.count(case["counted_trials"]),
            }
        )
    return pd.DataFrame(rows)
