"""Today: is all well? The verdict on a build, what to look at first, what failed, and whether it pays."""

from __future__ import annotations

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.overview import content, strip
from compilewatch.dashboard.render import controls, elements, streamlit_parts
from compilewatch.dashboard.render.shell import View
from compilewatch.dashboard.render.streamlit_parts import Pick


def draw(view: View) -> Link:
    """The page of one build on one machine."""
    elements.draw()
    page = content.page(view.link)
    streamlit_parts.draw(
        page.parts,
        picks={
            strip.KEY: Pick(lambda mark: controls.go(Page.WORKLOAD, focus=str(mark["workload"]))),
            "overview-builds": Pick(
                lambda build: controls.change(build=build), "Choose a row to see that build.", "build_id"
            ),
        },
    )
    return page.link
