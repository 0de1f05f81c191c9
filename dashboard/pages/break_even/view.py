"""Break-even: total time against steps, strategy by strategy, and what a plan of steps and restarts costs."""

from __future__ import annotations

import streamlit as st

from compilewatch.dashboard.links.links import PRICE, RESTARTS, STEPS, Link
from compilewatch.dashboard.pages.break_even import content
from compilewatch.dashboard.render import controls, streamlit_parts
from compilewatch.dashboard.render.shell import View, caches, strategies, tab
from compilewatch.dashboard.render.streamlit_parts import Pick

_SCALE_WORDS = {"linear": "Linear", "log": "Log"}


def draw(view: View) -> Link:
    """The page of one model; the link it returns has that in focus."""
    page = content.page(view.link)
    models, cache_states = content.workloads(view.link)
    with tab(view, page, models) as parts:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            with st.container(width=200):
                controls.number(
                    "steps",
                    "Steps per process",
                    STEPS,
                    help_="How often one process runs the compiled code.",
                )
            caches(view, cache_states)
        strategies(view)
        streamlit_parts.draw(
            parts,
            picks={
                content.EVERY_WORKLOAD: Pick(lambda model: controls.change(focus=model), values="workload")
            },
            controls={
                "break-even-curves": lambda: controls.segments("scale", "Scale", _SCALE_WORDS),
                "break-even-table": _money,
            },
        )
    return page.link


def _money() -> None:
    """What a plan costs beside its steps, above the table that says it."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=200):
            controls.number(
                "restarts",
                "Restarts per day",
                RESTARTS,
                help_="Every restart compiles again. R restarts mean R + 1 cold starts a day.",
            )
        with st.container(width=200):
            help_ = "What an hour of this machine costs you."
            controls.number("price", "Price per device-hour ($)", PRICE, help_=help_)
