"""What the tab Cold start says: four figures, bars of phases, and a row per case."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from compilewatch.dashboard.charts import cold_start as charts
from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import CASE, cases_of, floors_of, interval_cell, no_case, of_cases
from compilewatch.dashboard.parts.cold_start import MeanStarts, mean_starts, starts_chart
from compilewatch.dashboard.parts.model import facts
from compilewatch.dashboard.parts.parts import (
    BOUND,
    LEFT_OUT,
    TRIALS,
    Figure,
    Figures,
    PageContent,
    PageHeadline,
    Part,
    TableColumn,
)
from compilewatch.dashboard.read.data import filters_of, read_cases, read_job_caches, read_jobs
from compilewatch.dashboard.read.shaping import asides
from compilewatch.dashboard.read.versions import cached
from compilewatch.db import units
from compilewatch.db.cause.caches import host_rows, hosts_of
from compilewatch.db.metrics.geomean import geomean
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.identity import version_key
from compilewatch.db.records.strategies import EAGER, sort_key
from compilewatch.db.records.trial import bound_cell

_COLUMNS = {
    "workload": CASE["workload"],
    **parts.quantities("ns", {"first": "First result"}),
    "strategy": CASE["strategy"],
    **parts.quantities("ns", {"cost": "Compile cost"}),
    "cache": TableColumn("Cache state"),
    **parts.quantities("count", {"breaks": "Graph breaks"}),
    **parts.hidden(
        {
            "interval": TableColumn(
                "95 % interval", "interval", numeric=True, unit="ns", explained="Of the compile cost."
            ),
            **parts.quantities("count", {"graphs": "Graphs", "recompiles": "Recompiles"}),
            **BOUND,
            **TRIALS,
        }
    ),
}
_PRODUCTION_COLUMNS = {
    "workload": TableColumn("Job", pinned=True),
    **parts.quantities("ns", {"first": "First step", "cost": "Compile cost"}),
    "strategy": TableColumn("Strategy"),
    "started": TableColumn("Started (UTC)", kind="moment"),
    **parts.hidden(
        {
            **parts.texts({"machine": "Machine", "torch": "torch"}),
            **parts.quantities("ns", {"cpu": "CPU time"}),
            **parts.quantities(
                "count", {"breaks": "Graph breaks", "recompiles": "Recompiles", "processes": "Processes"}
            ),
        }
    ),
}
_HOST_COLUMNS = {
    "workload": TableColumn("Job", pinned=True),
    **parts.texts({"host": "Host"}),
    **parts.quantities("share", {"hit_rate": "Hit rate"}),
    **parts.quantities("ns", {"saved": "Saved", "lost": "Lost"}),
    "differs": TableColumn("Differs by", wide=True),
    **parts.hidden(
        parts.quantities(
            "count", {"hits": "Hits", "misses": "Misses", "bypasses": "Bypasses", "processes": "Processes"}
        )
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
def workloads(link: Link) -> tuple[list[str], frozenset[str]]:
    """The workloads to choose from, and the cache states that were measured."""
    cases = read_cases(filters_of(link))
    return sorted(set(cases["workload_label"]), key=version_key), frozenset(map(str, cases["cache"]))


@cached
def page(link: Link) -> PageContent:
    """One workload, or all where `link` names none that is there."""
    cases, floors = cases_of(link), floors_of(link.machine)
    if link.focus in set(cases["workload_label"]):
        cases = cases[cases["workload_label"] == link.focus]
    else:
        link = replace(link, focus=None)
    if cases.empty:
        return of_cases((no_case(link),), cases, link, floors)
    bars = starts_chart(link, cases)
    starts = mean_starts(cases)
    shown: tuple[Part, ...] = (
        *facts(link),
        *_headline(cases, starts),
        bars,
        *([] if bars.chart.spec is None else [_figures(cases, starts)]),
        *parts.table(
            "cold-start-table",
            "Time to first result, compile cost, graphs, graph breaks and recompiles of every case",
            _case_rows(cases),
            _COLUMNS,
            title="From start to steady",
        ),
        *_production(),
        *parts.listed(LEFT_OUT, [str(aside) for aside in asides(cases)]),
    )
    return of_cases(shown, cases, link, floors)


def _production() -> tuple[Part, ...]:
    """The newest start of each job that recorded itself, beside what the benchmark measured."""
    jobs = read_jobs(MOST_JOBS)
    rows = [
        {
            "workload": case["workload"],
            "strategy": case["strategy"],
            "machine": case["machine"],
            "torch": case["torch"],
            "started": case["last_started_at"],
            "first": case["time_to_first_result_ns"],
            "cost": case["compile_cost_ns"],
            "cpu": case["process_tree_cpu_ns"],
            "breaks": case["graph_breaks"],
            "recompiles": case["recompiles"],
            "processes": case["trials"],
        }
        for case in row_dicts(jobs.sort_values("last_started_at", ascending=False))
    ]
    return (
        *parts.table(
            "production-table",
            "Time to first step, compile cost, graph breaks and recompiles of the newest run of each job",
            pd.DataFrame(rows),
            _PRODUCTION_COLUMNS,
            title="In production",
        ),
        *_caches(),
    )


def _caches() -> tuple[Part, ...]:
    """What the caches of each host had for the newest run of each job."""
    rows = [
        {"workload": job} | row
        for job, processes in read_job_caches(MOST_JOBS).items()
        for row in host_rows(hosts_of(processes))
    ]
    return parts.table(
        "production-caches",
        "Hit rate of the compiler's caches by host, and by what hosts differ, of the newest run of each job",
        pd.DataFrame(rows),
        _HOST_COLUMNS,
        title="Caches by host",
    )


def _headline(cases: pd.DataFrame, starts: MeanStarts) -> tuple[PageHeadline, ...]:
    seconds = charts.seconds_text
    if starts.cold_ns is None:
        return ()
    if starts.filled_ns is not None:
        text = f"First result after {seconds(starts.cold_ns)} cold, {seconds(starts.filled_ns)} warm"
        return (PageHeadline(text, "good" if starts.filled_ns < starts.cold_ns else "bad"),)
    eager_ns = geomean(cases.loc[cases["strategy"] == EAGER.name, "time_to_first_result_ns"].dropna())
    beside = f", {seconds(eager_ns)} eager" if eager_ns is not None else ""
    return (PageHeadline(f"First result after {seconds(starts.cold_ns)} compiled cold{beside}"),)


def _figures(cases: pd.DataFrame, starts: MeanStarts) -> Figures:
    """Means over the cases of one cache state each; what the cache saves is a figure of its own."""
    seconds, cold = charts.seconds_text, starts.cold
    eager = cases.loc[cases["strategy"] == EAGER.name, "time_to_first_result_ns"].dropna()
    of_both = starts.filled_ns is not None
    over = f"{units.plural(len(cold), 'case')}{', both ways' if of_both else ''}"
    saved: tuple[Figure, ...] = ()
    if starts.cold_ns is not None and starts.filled_ns is not None:
        saved = (
            Figure(
                "First result, warm",
                seconds(starts.filled_ns),
                "Geometric mean over the same cases, with the caches of an earlier process.",
                over,
            ),
            Figure(
                "Saved by the cache",
                seconds(starts.cold_ns - starts.filled_ns),
                "First result with a cold cache, less that with a warm one.",
                over,
            ),
        )
    return Figures(
        (
            Figure(
                "First result, cold",
                seconds(starts.cold_ns),
                "Geometric mean over compiled cases, from spawning the process to its first result.",
                over,
            ),
            *saved,
            Figure(
                "First result, eager",
                seconds(geomean(eager)),
                "Geometric mean over the eager cases shown.",
                units.plural(len(eager), "case"),
            ),
            Figure(
                "Compile cost, cold",
                seconds(geomean(each for each in cold["compile_cost_ns"].dropna() if each > 0)),
                "Geometric mean over the same cases: calls until steady, minus as many steady calls.",
                over,
            ),
            Figure(
                "Graph breaks",
                units.count(cold["graph_breaks"].sum(min_count=1)),
                "Sum over the same cases.",
                over,
            ),
        )
    )


def _case_rows(cases: pd.DataFrame) -> pd.DataFrame:
    """A row per case. Eager compiles nothing and so has no compile cost."""
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
                "first": case["time_to_first_result_ns"],
                "cost": None if eager else case["compile_cost_ns"],
                "interval": None if eager else interval_cell(*ends, case["counted_trials"]),
                "graphs": case["graphs"],
                "breaks": case["graph_breaks"],
                "recompiles": case["recompiles"],
                "trials": case["counted_trials"],
            }
        )
    return pd.DataFrame(rows)
