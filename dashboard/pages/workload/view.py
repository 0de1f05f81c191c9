"""Models: a list of all, and of one which strategy, since when, from how many steps, what went wrong."""

from __future__ import annotations

import streamlit as st

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.workload import content
from compilewatch.dashboard.parts.trials import LIST
from compilewatch.dashboard.render import controls, streamlit_parts
from compilewatch.dashboard.render.shell import View, say_focus
from compilewatch.dashboard.render.streamlit_parts import Pick


def draw(view: View) -> Link:
    """The list, or the page of the workload in focus."""
    page = content.page(view.link)
    names = content.workloads(view.link)
    every = {"": "All models"} if page.link.focus is None or view.link.focus else {}
    models = {**every, **{name: name for name in names}}
    controls.one_of("focus", "Model", models, shown=page.link.focus, width_px=260)
    say_focus(view.link, page.link)
    streamlit_parts.draw(
        page.parts,
        picks={
            LIST: Pick(
                lambda trial: controls.go(Page.TRIAL, trial=trial),
                "Choose a row for its trial.",
                "trial",
            )
        },
        below={"workload-strategies": lambda: _ways_on(page.link)},
    )
    return page.link


def _ways_on(link: Link) -> None:
    """The pages that say more of it."""
    with st.container(horizontal=True):
        controls.button_to("Every figure over time", Page.TRENDS, focus=link.focus)
        controls.button_to("Its break-even", Page.BREAK_EVEN, focus=link.focus)
        controls.button_to("Its cold start", Page.COLD_START, focus=link.focus)
