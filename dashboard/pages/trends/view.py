"""Trends: one figure of a workload over time or over builds, and every case as a row with its history."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pandas as pd
import streamlit as st

from dashboard.charts import trend_rows
from dashboard.charts.style import PreparedChart
from dashboard.links.links import Link, Page
from dashboard.pages.trends import content
from dashboard.render import controls, elements
from dashboard.render.published_lines import PUBLISHED_TITLE
from dashboard.render.shell import View, focused, strategies
from db.wording.marks import BOUND_TITLE
from db.wording.metrics import HISTORY_METRICS, METRICS

_METRIC_WORDS = {metric: METRICS[metric].name for metric in HISTORY_METRICS}
_AXIS_WORDS = {"time": "Over time", "torch": "Over builds"}
_SCALE_WORDS = {"linear": "Linear", "log": "Log"}


def draw(view: View) -> Link:
    """The page; the link it returns names its axis and has the workload of the chart in focus."""
    view = replace(view, link=replace(view.link, axis=content.axis(view.snapshot, view.link)))
    workloads = content.workloads(view.snapshot, view.link)
    _filters(view, workloads)
    if not workloads:
        elements.nothing_to_show("No trial fits these filters.", next_step="Widen them in the sidebar.")
        return view.link
    focus = focused(view.link, workloads)
    seen = content.page_content(view.snapshot, view.link, focus)
    _main_chart(view.link, seen.chart, focus)
    elements.listed(PUBLISHED_TITLE, seen.published, icon=":material/public:")
    _every_case(view, seen.cases, seen.reach)
    elements.listed(
        "Cases without a number in their newest run", seen.without_number, icon=":material/report:"
    )
    return replace(view.link, focus=focus)


def _filters(view: View, workloads: list[str]) -> None:
    offered = content.metrics(view.snapshot, view.link)
    controls.segments("metric", "Figure", {name: _METRIC_WORDS[name] for name in offered})
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
        elements.notes(chart.notes)


def _reading(axis: str) -> str:
    text = "Band: 10th to 90th percentile of the trials. Hollow: a suspect measurement."
    if axis == "time":
        text += " Dashed lines: the build changed; in italics where several parts changed at once."
        text += " Ring: the level changed."
    return f"{text} Click a point for its trials."


def _open_trials() -> None:
    mark = elements.picked("trend")
    if mark:
        case = {key: (str(mark[key]),) for key in ("workload", "strategy")}
        controls.go(Page.TRIAL, run=str(mark["run_id"]), **case)


def _every_case(view: View, table: pd.DataFrame, reach: float) -> None:
    """All cases of the view as rows: newest value, change, history."""
    if table.empty:
        return
    figure = METRICS[view.link.metric]
    before = trend_rows.POINT_WORDS[view.link.axis]
    st.markdown(f"#### {figure.name} of every case")
    elements.table(
        table,
        {
            "workload": st.column_config.TextColumn("Workload", pinned=True),
            "strategy": "Strategy",
            **BOUND_TITLE,
            "newest": st.column_config.TextColumn(f"Newest ({figure.axis_unit})", alignment="right"),
            "change": st.column_config.NumberColumn(
                "Change (%)", format="%+.1f", help=f"Since the {before} before."
            ),
            "history": elements.history_column("History", reach),
            "runs": st.column_config.NumberColumn("Runs", help="How many runs the history shows."),
            "last": elements.moment_column("Measured (UTC)"),
        },
        key="trend-table",
        alt=f"{figure.name} of every case: newest value, change since the {before} before, history",
        on_select=_focus_row,
        values=list(table["workload"]),
    )


def _focus_row() -> None:
    workload = elements.picked_value("trend-table")
    if workload is not None:
        controls.change(focus=workload)
