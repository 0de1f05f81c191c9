"""Cases as the parts of a report: every one as a row, what has no number, and a page's charts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from dashboard import shaping
from dashboard.api.representation import rows_of
from dashboard.charts.prepared import PreparedChart
from dashboard.data import filters_of, read_cases
from dashboard.links import Link
from dashboard.prepared import break_even_plan
from dashboard.reports.content import Chart, Lines, ReportError, Section
from dashboard.reports.found import Frozen, newest_builds, nothing_fits
from dashboard.reports.svg import draw
from dashboard.reports.tables import table_of
from dashboard.snapshots import Snapshot
from db import units
from db.metrics.frame_rows import row_dicts
from db.strategies import sort_key
from db.wording.marks import BOUND_TITLE, bound_cell

_CASE_COLUMNS = {
    "workload": "Workload",
    "strategy": "Strategy",
    "speedup": "Speedup",
    "interval": "95 % interval",
    "latency": "Latency",
    "eager": "Eager latency",
    **BOUND_TITLE,
    "cost": "Compile cost",
    "break_even": "Break-even",
    "first": "Time to first result",
    "memory": "Peak memory",
    "trials": "Trials",
    "status": "Status",
}
_CASE_NUMBERS = frozenset(_CASE_COLUMNS) - {"workload", "strategy", "status", *BOUND_TITLE}


def of_cases(sections: tuple[Section, ...], cases: pd.DataFrame, link: Link) -> Frozen:
    if cases.empty:
        raise nothing_fits()
    return Frozen(sections, link, newest_builds(cases, "last_started_at"), {"cases": rows_of(cases)})


def charted(chart: PreparedChart, *, caption: str, alt: str) -> tuple[Section, ...]:
    """A chart as the page has it, with what it says below; nothing where it has nothing to draw."""
    if chart.spec is None:
        return ()
    return (
        Chart(
            title=chart.finding,
            caption=" ".join((caption, *chart.notes)).strip(),
            alt=alt,
            svg=draw(chart.spec, chart.frames),
        ),
    )


def listed(title: str, lines: Iterable[str]) -> tuple[Section, ...]:
    """Sentences below each other under a title; nothing where there are none."""
    found = tuple(lines)
    return (Lines(title=title, lines=found, listed=True),) if found else ()


def cases_of(snapshot: Snapshot, link: Link) -> pd.DataFrame:
    cases = shaping.with_strategies(read_cases(snapshot, filters_of(link)), link.strategy)
    return shaping.with_caches(cases, link.cache)


def focus_of(link: Link, rows: pd.DataFrame) -> str:
    """The workload that the page is about: the one asked for, else the first."""
    labels = sorted(set(rows["workload_label"])) or [""]
    if link.focus is not None and link.focus not in labels:
        raise ReportError(f"{link.focus} has nothing under these filters.", "Widen them, then freeze it.")
    return link.focus or labels[0]


def case_parts(cases: pd.DataFrame) -> tuple[Section, ...]:
    """Every case as a row."""
    if cases.empty:
        return ()
    ordered = sorted(row_dicts(cases), key=lambda case: (case["workload_label"], sort_key(case["strategy"])))
    frame = pd.DataFrame([_case_row(case) for case in ordered])
    return (table_of(frame, _CASE_COLUMNS, title="Every case", numeric=_CASE_NUMBERS),)


def _case_row(case: dict[str, Any]) -> dict[str, str]:
    return {
        "workload": case["workload_label"],
        "strategy": case["strategy"],
        "speedup": units.ratio(case["speedup"]),
        "interval": units.interval(
            case["speedup_low"], case["speedup_high"], units.ratio, trials=case["counted_trials"]
        ),
        "latency": units.duration(case["latency_ns"]),
        "eager": units.duration(case["control_latency_ns"]),
        "bound": bound_cell(case["bound"]),
        "cost": units.duration(case["compile_cost_ns"]),
        "break_even": break_even_plan.steps_words(case),
        "first": units.duration(case["time_to_first_result_ns"]),
        "memory": units.size(case["peak_bytes"]),
        "trials": units.count(case["counted_trials"]),
        "status": case["status"],
    }
