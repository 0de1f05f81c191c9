"""Trends: one figure of a workload over time or over builds, and every case as a row with its history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from dashboard import sparklines, theme
from dashboard.charts import build_events, gaps, target_lines, trend_rows, trends
from dashboard.charts.figures import FIGURES, Figure
from dashboard.charts.prepared import PreparedChart
from dashboard.data import filters_of, of_workload, read_choices, read_points, read_workloads, recent
from dashboard.links import Link, Page
from dashboard.policy import targets_in_force
from dashboard.published_lines import PUBLISHED_COLUMNS, PUBLISHED_TITLE, published_lines
from dashboard.shaping import ASIDE_COLUMNS, BUILD_COMPONENTS, asides, with_strategies
from dashboard.snapshots import Snapshot, remembered
from dashboard.views import controls, elements
from dashboard.views.shell import View, focused, strategies
from db import units
from db.queries.filters import Filters
from db.strategies import EAGER, sort_key

_METRIC_WORDS = {metric: figure.word for metric, figure in FIGURES.items()}
_AXIS_WORDS = {"time": "Over time", "torch": "Over builds"}
_SCALE_WORDS = {"linear": "Linear", "log": "Log"}

_CASE = ["workload_id", "strategy_id"]


@dataclass(frozen=True)
class Seen:
    """What the page is drawn from: the chart of the workload in focus, what others published about it, and a
    row per case.
    """

    chart: PreparedChart
    published: list[str]
    cases: pd.DataFrame
    reach: float
    without_number: list[str]


@remembered
def _workloads(snapshot: Snapshot, link: Link) -> list[str]:
    return sorted(set(read_workloads(snapshot, filters_of(link))["workload_label"]))


@remembered
def _axis(snapshot: Snapshot, link: Link) -> str:
    if link.axis != "auto":
        return link.axis
    return trend_rows.natural_axis(read_points(snapshot, recent(snapshot, filters_of(link)), "run"))


@remembered
def _seen(snapshot: Snapshot, link: Link, focus: str) -> Seen:
    """`link` names its axis."""
    builds = read_choices(snapshot).builds
    by: Literal["run", "build"] = "build" if link.axis == "torch" else "run"
    filters = filters_of(link)

    def points_of(wanted: Filters, *more: str) -> pd.DataFrame:
        points = read_points(snapshot, wanted, by)
        columns = dict.fromkeys(
            (*_CASE, *ASIDE_COLUMNS, *BUILD_COMPONENTS, "break_even", *trend_rows.needed(link.metric), *more)
        )
        found = with_strategies(points[[name for name in columns if name in points]], link.strategy)
        return trend_rows.in_order(found, link.axis, list(builds))

    told_of_case = PUBLISHED_COLUMNS if link.metric == "speedup" else ()
    whole = points_of(of_workload(snapshot, filters, focus), *told_of_case)
    mine = whole[whole["workload_label"] == focus]
    points = points_of(recent(snapshot, filters))
    cases, reach = _case_rows(points, FIGURES[link.metric])
    return Seen(
        chart=_chart_of(mine, link, focus, builds),
        published=published_lines(_newest(mine)) if told_of_case else [],
        cases=cases,
        reach=reach,
        without_number=[str(aside) for aside in asides(_newest(points))],
    )


def _chart_of(points: pd.DataFrame, link: Link, focus: str, builds: Mapping[str, str]) -> PreparedChart:
    """`points` of one workload; `builds` are all names by id, oldest first."""
    rows = trend_rows.frame(points, link.metric, builds)
    finding = trend_rows.finding(rows, link.metric, focus, link.axis)
    if rows.empty:
        return PreparedChart(finding)
    lines = target_lines.frame(rows, link.metric, targets_in_force())
    drawn, window, outside = target_lines.beside(lines, trend_rows.window(rows))
    since_first = points.loc[rows.index[0] :]
    spec = trends.spec(
        link.metric,
        axis=link.axis,
        scale=link.scale,
        strategies=tuple(theme.ordered(rows["strategy"])),
        builds=gaps.axis_builds(since_first, builds),
        shown=window,
        targets=not drawn.empty,
    )
    events = build_events.events(points, rows)
    frames = {"main": rows, "events": events, **({} if drawn.empty else {"targets": drawn})}
    unseen = trend_rows.unseen(points, rows, link.axis)
    earlier = [f"{unseen} Choose dates to see earlier ones."] if unseen else []
    missing = gaps.sentence(since_first, link.metric, builds) if link.axis == "torch" else ""
    return PreparedChart(finding, spec, frames, [*earlier, *outside, *filter(None, (missing,))])


def draw(view: View) -> Link:
    """The page; the link it returns names its axis and has the workload of the chart in focus."""
    view = replace(view, link=replace(view.link, axis=_axis(view.snapshot, view.link)))
    workloads = _workloads(view.snapshot, view.link)
    _filters(view, workloads)
    if not workloads:
        elements.nothing_to_show("No trial fits these filters.", next_step="Widen them in the sidebar.")
        return view.link
    focus = focused(view.link, workloads)
    seen = _seen(view.snapshot, view.link, focus)
    _main_chart(view.link, seen.chart, focus)
    elements.listed(PUBLISHED_TITLE, seen.published, icon=":material/public:")
    _every_case(view, seen.cases, seen.reach)
    elements.listed(
        "Cases without a number in their newest run", seen.without_number, icon=":material/report:"
    )
    return replace(view.link, focus=focus)


def _filters(view: View, workloads: list[str]) -> None:
    controls.segments("metric", "Figure", _METRIC_WORDS)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        controls.segments("axis", "Axis", _AXIS_WORDS, value=view.link.axis)
        controls.segments("scale", "Scale", _SCALE_WORDS)
        with st.container(width=260):
            controls.one_of("focus", "Workload in the chart", {name: name for name in workloads})
        with st.container(width=150):
            today = datetime.now(UTC).date()
            oldest = view.choices.oldest_run_at.date() if view.choices.oldest_run_at else today
            controls.day("since", "Since (UTC)", first=oldest, last=today)
        with st.container(width=150):
            controls.day("until", "Until (UTC)", first=oldest, last=today)
    strategies(view)


def _main_chart(link: Link, chart: PreparedChart, focus: str) -> None:
    with st.container(border=True):
        elements.finding(chart.finding, _reading(link.axis))
        if chart.spec is None:
            elements.nothing_to_show(
                f"{_METRIC_WORDS[link.metric]} of {focus} was not measured under these filters."
            )
            return
        elements.chart(
            chart.spec,
            chart.frames,
            key="trend",
            alt=f"{_METRIC_WORDS[link.metric]} of {focus}, {_AXIS_WORDS[link.axis].lower()}, by strategy",
            on_select=_open_trials,
        )
        for sentence in chart.notes:
            elements.note(sentence)


def _reading(axis: str) -> str:
    text = "Band: 10th to 90th percentile of the trials. Hollow: a suspect measurement."
    if axis == "time":
        text += " Dashed lines: the build changed; in italics where several parts changed at once."
    return f"{text} Click a point for its trials."


def _open_trials() -> None:
    mark = elements.picked("trend")
    if mark:
        case = {key: (str(mark[key]),) for key in ("workload", "strategy")}
        controls.go(Page.TRIAL, run=str(mark["run_id"]), **case)


def _numbers(points: pd.DataFrame, *names: str) -> NDArray[np.int64]:
    """Of each point a number that it shares with those that have the same values in these columns."""
    numbers = np.zeros(len(points), dtype=np.int64)
    for name in names:
        codes, distinct = points[name].array.factorize()
        numbers = numbers * len(distinct) + codes
    return numbers


def _newest(points: pd.DataFrame) -> pd.DataFrame:
    """The last point of each case."""
    _, from_end = np.unique(_numbers(points, *_CASE)[::-1], return_index=True)
    return points.take(np.sort(len(points) - 1 - from_end))


def _case_rows(points: pd.DataFrame, figure: Figure) -> tuple[pd.DataFrame, float]:
    """A row per case, and how far from 1 the drawing of their histories reaches."""
    columns = ["workload_label", "strategy", "run_id", "last_started_at", figure.column]
    points = points[columns]
    if not figure.eager_too:
        points = points.take(np.flatnonzero((points["strategy"] != EAGER.name).to_numpy()))
    number = _numbers(points, "workload_label", "strategy")
    by_case = np.argsort(number, kind="stable")
    _, begins = np.unique(number[by_case], return_index=True)
    ends = [*begins.tolist(), len(points)][1:]
    values = points[figure.column].to_numpy(dtype=np.float64, na_value=np.nan)[by_case] / figure.divisor
    runs = points["run_id"].array.factorize()[0][by_case]
    moments = points["last_started_at"].to_numpy(dtype="datetime64[us]").astype(np.int64)[by_case]
    labels, strategies = (points[name].array.take(by_case[begins]).tolist() for name in columns[:2])
    rows = [
        _case_row(label, strategy, values[begin:end], runs[begin:end], moments[begin:end])
        for label, strategy, begin, end in zip(labels, strategies, begins.tolist(), ends, strict=True)
    ]
    rows.sort(key=lambda row: (row["workload"], sort_key(row["strategy"])))
    histories, reach = sparklines.relative([row["history"] for row in rows])
    last = pd.to_datetime([row["last"] for row in rows], unit="us", utc=True)
    return pd.DataFrame(rows).assign(history=histories, last=last), reach


def _every_case(view: View, table: pd.DataFrame, reach: float) -> None:
    """All cases of the view as rows: newest value, change, history."""
    if table.empty:
        return
    figure = FIGURES[view.link.metric]
    before = trend_rows.POINT_WORDS[view.link.axis]
    st.markdown(f"#### {figure.word} of every case")
    elements.table(
        table,
        {
            "workload": st.column_config.TextColumn("Workload", pinned=True),
            "strategy": "Strategy",
            "newest": st.column_config.TextColumn(f"Newest ({figure.unit})", alignment="right"),
            "change": st.column_config.NumberColumn(
                "Change (%)", format="%+.1f", help=f"Since the {before} before."
            ),
            "history": elements.history_column("History", reach),
            "runs": st.column_config.NumberColumn("Runs", help="How many runs the history shows."),
            "last": elements.moment_column("Newest run (UTC)"),
        },
        key="trend-table",
        alt=f"{figure.word} of every case: newest value, change since the {before} before, history",
        on_select=_focus_row,
        values=list(table["workload"]),
    )


def _case_row(
    workload: str,
    strategy: str,
    values: NDArray[np.float64],
    runs: NDArray[np.int64],
    moments: NDArray[np.int64],
) -> dict[str, Any]:
    """The row of a case whose points have these values, NaN where missing, runs and moments."""
    known = values[~np.isnan(values)].tolist()
    return {
        "workload": workload,
        "strategy": strategy,
        "newest": units.significant(known[-1]) if known else units.MISSING,
        "change": _change(known),
        "history": known[-60:],
        "runs": len(set(runs.tolist())),
        "last": int(moments.max()),
    }


def _change(values: Sequence[float]) -> float | None:
    """From the last point but one to the last, in percent; what rounds to nothing has no sign."""
    if len(values) < 2 or not values[-2]:
        return None
    return round((values[-1] / values[-2] - 1) * 100, 1) + 0.0


def _focus_row() -> None:
    workload = elements.picked_value("trend-table")
    if workload is not None:
        controls.change(focus=workload)
