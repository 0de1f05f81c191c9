"""Frames and facts as tables of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from dashboard.api.representation import rows_of
from dashboard.charts.style import PreparedChart
from dashboard.links.links import Link
from dashboard.pages.break_even import content as break_even_plan
from dashboard.read import shaping
from dashboard.read.data import filters_of, read_cases
from dashboard.read.shaping import BUILD_COMPONENTS, told_columns
from dashboard.read.snapshots import Snapshot
from dashboard.reports.content import (
    Chart,
    Column,
    Frozen,
    Lines,
    ReportError,
    Section,
    Table,
    newest_builds,
    nothing_fits,
)
from dashboard.reports.svg import draw
from db.judge.policy import Policy, policy_entries
from db.metrics.groups import row_dicts
from db.records.strategies import sort_key
from db.wording import units
from db.wording.marks import BOUND_TITLE, bound_cell

MOST_ROWS = 250
_MACHINE_PARTS = ("machine", "device", "device_name", "cpu_name", "cpu_count", "threads", "ram_bytes")


def table_of(
    frame: pd.DataFrame,
    columns: Mapping[str, str],
    *,
    title: str = "",
    numeric: Iterable[str] = (),
    tones: Sequence[str] = (),
    note: str = "",
) -> Table:
    """The columns of `frame` named in `columns` (name -> title), cut to `MOST_ROWS` rows, and that said after
    `note`.
    """
    columns, right = told_columns(columns, frame), set(numeric)
    shown = frame.head(MOST_ROWS)
    rest = len(frame) - len(shown)
    more = f"{units.plural(rest, 'more row')} in the frozen data." if rest else ""
    return Table(
        title=title,
        columns=tuple(Column(title=title, numeric=name in right) for name, title in columns.items()),
        rows=tuple(
            tuple(_cell(value) for value in row) for row in shown[list(columns)].itertuples(index=False)
        ),
        tones=tuple(tones[: len(shown)]),
        note=f"{note} {more}".strip(),
    )


def _cell(value: Any) -> str:
    """A value as text; what is missing is a dash."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_cell(item)}" for key, item in value.items()) or units.MISSING
    missing = value is None or value is pd.NA or value is pd.NaT or value != value  # noqa: PLR0124
    return units.MISSING if missing or value == "" else str(value)


def environment(machine: Mapping[str, Any] | None, builds: Mapping[str, Mapping[str, Any]]) -> Table:
    """The machine, and each build's parts beside each other. `builds` maps a name to the parts."""
    rows = []
    if machine is not None:
        rows = [
            (part.replace("_", " "), *([_machine_cell(part, machine.get(part))] * max(1, len(builds))))
            for part in _MACHINE_PARTS
        ]
    parts = (*BUILD_COMPONENTS, "packages", "settings")
    rows += [
        (part.replace("_", " "), *(_cell(build.get(part)) for build in builds.values())) for part in parts
    ]
    names = tuple(builds) or ("machine",)
    return Table(
        title="Environment",
        columns=(Column(title="part"), *(Column(title=name) for name in names)),
        rows=tuple(row for row in rows if any(value != units.MISSING for value in row[1:])),
    )


def _machine_cell(part: str, value: Any) -> str:
    return units.size(value) if part.endswith("_bytes") else _cell(value)


def policy_table(policy: Policy) -> Table:
    """Every constant by which verdicts were made."""
    return Table(
        title="Policy in force",
        columns=(Column(title="constant"), Column(title="value", numeric=True), Column(title="meaning")),
        rows=tuple((entry.name, entry.value, entry.meaning) for entry in policy_entries(policy)),
    )


# Cases as the parts of a report: every one as a row, what has no number, and a page's charts.

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
