"""Modes: which strategy suits which workload, for latency, for a number of steps, or for memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from compilewatch.dashboard.links.links import STEPS, Link, Page
from compilewatch.dashboard.pages.modes import content
from compilewatch.dashboard.parts.cases import models_of
from compilewatch.dashboard.render import controls, streamlit_parts
from compilewatch.dashboard.render.shell import View, strategies, tab
from compilewatch.dashboard.render.streamlit_parts import Pick


def draw(view: View) -> Link:
    """The page for the goal that the link names."""
    page = content.page(view.link)
    with tab(view, page, models_of(view.link)) as parts:
        strategies(view)
        streamlit_parts.draw(
            parts,
            picks={
                "modes-map": Pick(_open_history, "Click a cell for its history."),
                "modes-best": Pick(lambda model: controls.change(focus=model), values="workload"),
            },
            controls={"modes-best": lambda: _goal(view.link)},
        )
    return page.link


def _open_history(mark: Mapping[str, Any]) -> None:
    controls.go(Page.WORKLOAD, focus=str(mark["workload"]), strategy=(str(mark["strategy"]),))


def _goal(link: Link) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        controls.segments("goal", "Goal", content.GOALS)
        if link.goal == "steps":
            with st.container(width=200):
                controls.number(
                    "steps",
                    "Steps per process",
                    STEPS,
                    help_="How often the compiled code runs in one process. Compile cost is paid once.",
                )
