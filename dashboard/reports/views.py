"""Pages of the dashboard as the parts of a report: the chart of each, its finding, its cases as a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import pandas as pd

from dashboard import shaping, theme
from dashboard.api.representation import rows_of
from dashboard.charts import break_even as break_even_charts
from dashboard.charts import build_events, gaps, heat_map, speedups, trend_rows, trends
from dashboard.charts import cold_start as cold_start_charts
from dashboard.charts.figures import FIGURES
from dashboard.data import (
    filters_of,
    of_workload,
    read_cases,
    read_choices,
    read_cold_start,
    read_points,
    read_workloads,
)
from dashboard.links import TITLES, Link, Page
from dashboard.reports import record_views
from dashboard.reports.content import Chart, Lines, ReportError, Section
from dashboard.reports.found import Frozen, newest_builds, nothing_fits
from dashboard.reports.svg import draw
from dashboard.reports.tables import table_of
from dashboard.snapshots import Snapshot
from db import units
from db.metrics.case_modes import mode_options
from db.strategies import sort_key

_CASE_COLUMNS = {
    "workload": "Workload",
    "strategy": "Strategy",
    "speedup": "Speedup",
    "interval": "95 % interval",
    "latency": "Latency",
    "eager": "Eager latency",
    "cost": "Compile cost",
    "break_even": "Break-even",
    "first": "Time to first result",
    "memory": "Peak memory",
    "trials": "Trials",
    "status": "Status",
}
_CASE_NUMBERS = frozenset(_CASE_COLUMNS) - {"workload", "strategy", "status"}


def frozen(snapshot: Snapshot, link: Link) -> Frozen:
    """What the page of `link` shows. `link` has its machine and build resolved.

    Raises ReportError for a page that cannot be frozen, or that shows nothing under these filters.
    """
    if link.page not in _PAGES:
        raise ReportError(
            f"The page {TITLES[link.page]} cannot be frozen.", "Freeze a page that shows measurements."
        )
    return _PAGES[link.page](snapshot, link)


def _of_cases(sections: tuple[Section, ...], cases: pd.DataFrame, link: Link) -> Frozen:
    if cases.empty:
        raise nothing_fits()
    return Frozen(sections, link, newest_builds(cases, "last_started_at"), {"cases": rows_of(cases)})


def _overview(snapshot: Snapshot, link: Link) -> Frozen:
    cases = _cases(snapshot, link)
    rows = speedups.frame(cases)
    best = rows.groupby("workload")["speedup"].max().sort_values(ascending=False)
    chart = Chart(
        title=speedups.finding(rows),
        caption="Each point is a case, its bar the 95 % interval. The dotted line is eager.",
        alt="Speedup over eager of every compiled case with its interval",
        svg=draw(
            speedups.spec(tuple(best.index), tuple(theme.ordered(rows["strategy"]))),
            {"main": rows, "eager": pd.DataFrame({"speedup": [1.0]})},
        ),
    )
    return _of_cases(((chart,) if len(rows) else ()) + _case_parts(cases), cases, link)


_READING = (
    "Band: 10th to 90th percentile of the trials. Hollow: a suspect measurement. Dashed lines: the build "
    "changed; in italics where several parts changed at once."
)


def _trends(snapshot: Snapshot, link: Link) -> Frozen:
    names = read_choices(snapshot).builds
    if link.axis == "auto":
        link = replace(link, axis=trend_rows.natural_axis(read_points(snapshot, filters_of(link))))
    by: Literal["run", "build"] = "build" if link.axis == "torch" else "run"
    filters = filters_of(link)
    focus = _focus(link, read_workloads(snapshot, filters))
    points = read_points(snapshot, of_workload(snapshot, filters, focus), by)
    points = shaping.with_strategies(points, link.strategy)
    points = trend_rows.in_order(points[points["workload_label"] == focus], link.axis, list(names))
    figure = FIGURES[link.metric]
    rows = trend_rows.frame(points, link.metric, names)
    parts: tuple[Section, ...] = ()
    if len(rows):
        since_first = points.loc[rows.index[0] :]
        missing = gaps.sentence(since_first, link.metric, names) if link.axis == "torch" else ""
        spec = trends.spec(
            link.metric,
            axis=link.axis,
            scale=link.scale,
            strategies=tuple(theme.ordered(rows["strategy"])),
            builds=gaps.axis_builds(since_first, names),
            shown=trend_rows.window(rows),
        )
        parts = (
            Chart(
                title=trend_rows.finding(rows, link.metric, focus, link.axis),
                caption=" ".join(
                    filter(None, (_READING, trend_rows.unseen(points, rows, link.axis), missing))
                ),
                alt=f"{figure.word} of {focus}, point by point, by strategy",
                svg=draw(spec, {"main": rows, "events": build_events.events(points, rows)}),
            ),
            table_of(
                rows.iloc[::-1],
                {
                    "when_text": "Run",
                    "build": "Build",
                    "strategy": "Strategy",
                    "value_text": figure.word,
                    "interval_text": "95 % interval",
                    "trials_text": "Trials",
                },
                title=f"{figure.word} of {focus}, newest first",
                numeric=("value_text", "interval_text", "trials_text"),
            ),
        )
    return _of_cases(parts, points, _focused(link, focus))


def _modes(snapshot: Snapshot, link: Link) -> Frozen:
    cases = _cases(snapshot, link)
    reasons = shaping.not_applicable(cases, set(link.strategy)) if len(cases) else {}
    cells = heat_map.cells(cases, reasons, sorted(set(cases["workload_label"])))
    parts: tuple[Section, ...] = ()
    if len(cells):
        workloads, strategies = dict.fromkeys(cells["workload"]), theme.ordered(cells["strategy"])
        parts = (
            Chart(
                title="Speedup over eager",
                caption="Blue is faster, orange slower, grey has no number. *: nothing was compiled.",
                alt="Speedup over eager of every workload with every strategy, as numbers in cells",
                svg=draw(heat_map.spec(tuple(workloads), tuple(strategies)), {"main": cells}),
            ),
        )
    return _of_cases(parts + _case_parts(cases), cases, link)


def _break_even(snapshot: Snapshot, link: Link) -> Frozen:
    cases = _cases(snapshot, link)
    focus = _focus(link, cases)
    mine = cases[cases["workload_label"] == focus]
    options, left_out = mode_options(mine)
    parts: tuple[Section, ...] = ()
    if len(options) > 1:
        stated = mine[mine["break_even"] == "steps"]
        steps = dict(zip(stated["strategy"], stated["break_even_steps"].astype(int), strict=True))
        log = link.scale == "log"
        found = break_even_charts.curves(options, steps, steps=link.steps, restarts=0, log=log)
        strategies = tuple(theme.ordered(option.strategy for option in options))
        parts = (
            Chart(
                title=break_even_charts.finding(mine, focus),
                caption="Total time of a process, compile cost included. Where a line crosses eager, "
                "compiling has paid off. Band: 95 % interval.",
                alt=f"Total time against steps per process on {focus}, one line per strategy",
                svg=draw(
                    break_even_charts.spec(strategies, found.unit, link.scale, found.last_step),
                    found.frames,
                ),
            ),
        )
    if left_out:
        lines = tuple(f"{case.workload} with {case.strategy}: {case.reason}" for case in left_out)
        parts += (Lines(title="Without a line", lines=lines, listed=True),)
    return _of_cases(parts + _case_parts(cases), cases, _focused(link, focus))


def _cold_start(snapshot: Snapshot, link: Link) -> Frozen:
    cases = _cases(snapshot, link)
    if link.focus in set(cases["workload_label"]):
        cases = cases[cases["workload_label"] == link.focus]
    bars = cold_start_charts.bars(cases, read_cold_start(snapshot, filters_of(link)))
    parts: tuple[Section, ...] = ()
    if len(bars.rows):
        caption = "Medians over trials, phase by phase, from spawning the process to its first result."
        parts = (
            Chart(
                title=cold_start_charts.finding(bars.rows),
                caption=f"{caption} {bars.left_out}".strip(),
                alt="Phases from process start to first result, one stacked bar per case",
                svg=draw(
                    cold_start_charts.spec(bars.cases, bars.phases),
                    {"main": bars.rows, "totals": cold_start_charts.totals(bars.rows)},
                ),
            ),
        )
    return _of_cases(parts + _case_parts(cases), cases, link)


_PAGES: dict[Page, Callable[[Snapshot, Link], Frozen]] = {
    Page.OVERVIEW: _overview,
    Page.TRENDS: _trends,
    Page.MODES: _modes,
    Page.BREAK_EVEN: _break_even,
    Page.COLD_START: _cold_start,
    Page.REGRESSIONS: record_views.regressions,
    Page.TRIAL: record_views.trial,
    Page.RUNS: record_views.runs,
}
FREEZABLE = frozenset({Page.UPGRADE, *_PAGES})
"""Pages that a report can be made of."""


def _cases(snapshot: Snapshot, link: Link) -> pd.DataFrame:
    cases = shaping.with_strategies(read_cases(snapshot, filters_of(link)), link.strategy)
    return shaping.with_caches(cases, link.cache)


def _focus(link: Link, rows: pd.DataFrame) -> str:
    """The workload that the page is about: the one asked for, else the first."""
    labels = sorted(set(rows["workload_label"])) or [""]
    if link.focus is not None and link.focus not in labels:
        raise ReportError(f"{link.focus} has nothing under these filters.", "Widen them, then freeze it.")
    return link.focus or labels[0]


def _focused(link: Link, focus: str) -> Link:
    return replace(link, focus=focus)


def _case_parts(cases: pd.DataFrame) -> tuple[Section, ...]:
    """Every case as a row, and what has no number with its reason."""
    if cases.empty:
        return ()
    ordered = sorted(
        shaping.row_dicts(cases), key=lambda case: (case["workload_label"], sort_key(case["strategy"]))
    )
    frame = pd.DataFrame([_case_row(case) for case in ordered])
    parts: tuple[Section, ...] = (table_of(frame, _CASE_COLUMNS, title="Every case", numeric=_CASE_NUMBERS),)
    if lines := tuple(str(aside) for aside in shaping.asides(cases)):
        parts += (Lines(title="Beside the numbers", lines=lines, listed=True),)
    return parts


def _case_row(case: dict[str, Any]) -> dict[str, str]:
    steps = int(case["break_even_steps"]) if case["break_even"] == "steps" else str(case["break_even"])
    return {
        "workload": case["workload_label"],
        "strategy": case["strategy"],
        "speedup": units.ratio(case["speedup"]),
        "interval": units.interval(case["speedup_low"], case["speedup_high"], units.ratio),
        "latency": units.duration(case["latency_ns"]),
        "eager": units.duration(case["control_latency_ns"]),
        "cost": units.duration(case["compile_cost_ns"]),
        "break_even": steps if isinstance(steps, str) else units.steps(steps),
        "first": units.duration(case["time_to_first_result_ns"]),
        "memory": units.size(case["peak_bytes"]),
        "trials": units.count(case["counted_trials"]),
        "status": case["status"],
    }
