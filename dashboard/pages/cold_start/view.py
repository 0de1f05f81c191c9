"""Cold start: where the time from process start to the first result goes, strategy by strategy."""

from __future__ import annotations

import streamlit as st

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.pages.cold_start import content
from compilewatch.dashboard.render import controls, streamlit_parts
from compilewatch.dashboard.render.shell import View, caches, say_focus, strategies


def draw(view: View) -> Link:
    """The page of one workload, or of all where the link names none."""
    workloads, cache_states = content.workloads(view.link)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=260):
            controls.one_of("focus", "Workload", {"": "All workloads", **{name: name for name in workloads}})
        caches(view, cache_states)
    strategies(view)
    page = content.page(view.link)
    say_focus(view.link, page.link)
    streamlit_parts.draw(page.parts)
    return page.link
