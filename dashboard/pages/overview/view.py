"""Overview: is all well? The verdict on a build, its slowest cases, failures, a row per workload."""

from __future__ import annotations

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.overview import content
from compilewatch.dashboard.render import controls, silent_schedules, streamlit_parts
from compilewatch.dashboard.render.shell import View
from compilewatch.dashboard.render.streamlit_parts import Pick


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
        below={"overview-regressions": lambda: controls.button_to("Open the inbox", Page.REGRESSIONS)},
    )
    return page.link
