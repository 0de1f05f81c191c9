"""Overview: is all well? The verdict on a build, its slowest cases, failures, a row per workload."""

from __future__ import annotations

import streamlit as st

from dashboard.links.links import Link, Page
from dashboard.pages.overview import content
from dashboard.render import controls, silent_schedules, streamlit_parts
from dashboard.render.shell import View
from dashboard.render.streamlit_parts import Pick


def draw(view: View) -> Link:
    """The page of one build on one machine."""
    silent_schedules.draw()
    page = content.page(view.link)
    streamlit_parts.draw(
        page.parts,
        picks={
            "overview-table": Pick(
                lambda workload: controls.go(Page.WORKLOAD, focus=workload),
                values="workload",
            ),
            "overview-slowest": Pick(
                lambda trial: controls.go(Page.TRIAL, trial=trial), "Choose a row for its profile.", "trial"
            ),
            "overview-builds": Pick(
                lambda build: controls.change(build=build), "Choose a row to see that build.", "build_id"
            ),
        },
        below={"overview-regressions": _inbox},
    )
    return page.link


def _inbox() -> None:
    st.button("Open the inbox", icon=":material/inbox:", on_click=controls.go, args=(Page.REGRESSIONS,))
