"""Models: a list of all, and of one a figure over time or over builds, with how it is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.workload import content, history, notes
from compilewatch.dashboard.read.data import read_choices_on
from compilewatch.dashboard.render import controls, forms, streamlit_parts
from compilewatch.dashboard.render.shell import View, strategies, tab
from compilewatch.dashboard.render.streamlit_parts import Pick
from compilewatch.db.columns.metrics import FIRST_METRICS, METRICS

_AXIS_WORDS = {"time": "Over time", "torch": "Over builds"}
_OPENED = Pick(lambda model: controls.change(focus=model), values="workload")
_SCALE_WORDS = {"linear": "Linear", "log": "Log"}


def draw(view: View) -> Link:
    """The list, or the history of the model in focus; the link it returns names its axis."""
    page = content.page(view.link)
    view = replace(view, link=replace(view.link, axis=history.axis(content.over_all(view.link))))
    with tab(view, page, content.workloads(view.link)) as parts:
        forms.tell(notes.PAGE)
        if page.link.focus:
            strategies(view)
        streamlit_parts.draw(
            parts,
            picks={
                "trend": Pick(_open_trials, "Click a point for its trials."),
                **({} if page.link.focus else {"trend-table": _OPENED}),
            },
            controls={"trend": lambda: _drawn(view)},
            below={"trend": lambda: notes.draw(view, read_choices_on(view.link.machine).builds)},
        )
    return page.link


def _drawn(view: View) -> None:
    """Which figure, and how the chart is drawn."""
    words = {name: METRICS[name].name for name in history.metrics(content.over_all(view.link))}
    controls.first_or_more("metric", "Metric", words, first_=FIRST_METRICS, value=view.link.metric)
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
