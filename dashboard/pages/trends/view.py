"""Trends: one figure of a workload over time or over builds, and every case as a row with its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.trends import content, notes
from compilewatch.dashboard.read.data import read_choices_on
from compilewatch.dashboard.render import controls, forms, streamlit_parts
from compilewatch.dashboard.render.shell import View, say_focus, strategies
from compilewatch.dashboard.render.streamlit_parts import Pick
from compilewatch.db.columns.metrics import FIRST_METRICS, METRICS

_AXIS_WORDS = {"time": "Over time", "torch": "Over builds"}
_SCALE_WORDS = {"linear": "Linear", "log": "Log"}


def draw(view: View) -> Link:
    """The page; the link it returns names its axis and has the workload of the chart in focus."""
    view = replace(view, link=replace(view.link, axis=content.axis(view.link)))
    page = content.page(view.link)
    forms.tell(notes.PAGE)
    _filters(view, page.link.focus)
    say_focus(view.link, page.link)
    streamlit_parts.draw(
        page.parts,
        picks={
            "trend": Pick(_open_trials, "Click a point for its trials."),
            "trend-table": Pick(lambda workload: controls.change(focus=workload), values="workload"),
        },
        controls={"trend": lambda: _drawn(view)},
        below={"trend": lambda: notes.draw(view, read_choices_on(view.link.machine).builds)},
    )
    return page.link


def _filters(view: View, focus: str | None) -> None:
    offered = content.metrics(view.link)
    words = {name: METRICS[name].name for name in offered}
    controls.first_or_more(
        "metric",
        "Metric",
        words,
        first_=FIRST_METRICS,
        value=view.link.metric,
        beside=lambda: _workload(view, focus),
    )
    strategies(view)


def _workload(view: View, focus: str | None) -> None:
    with st.container(width=210):
        names = {name: name for name in content.workloads(view.link)}
        controls.one_of("focus", "Workload in the chart", names, shown=focus)


def _drawn(view: View) -> None:
    """How the chart is drawn."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        controls.segments("axis", "Axis", _AXIS_WORDS, value=view.link.axis)
        controls.segments("scale", "Scale", _SCALE_WORDS)
        with st.popover("Dates", icon=":material/calendar_month:"):
            today = datetime.now(UTC).date()
            oldest = view.choices.oldest_run_at.date() if view.choices.oldest_run_at else today
            for key, label in (("since", "Since (UTC)"), ("until", "Until (UTC)")):
                controls.day(key, label, first=oldest, last=today)


def _open_trials(mark: Mapping[str, Any]) -> None:
    case = {key: (str(mark[key]),) for key in ("workload", "strategy")}
    controls.go(Page.TRIAL, run=str(mark["run_id"]), **case)
