"""Cold start: where the time from process start to the first result goes, strategy by strategy."""

from __future__ import annotations

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.pages.cold_start import content
from compilewatch.dashboard.render import streamlit_parts
from compilewatch.dashboard.render.shell import View, caches, strategies, tab


def draw(view: View) -> Link:
    """A row a model, of one model each of its strategies."""
    models, cache_states = content.workloads(view.link)
    page = content.page(view.link)
    with tab(view, page, models) as parts:
        caches(view, cache_states)
        strategies(view)
        streamlit_parts.draw(parts)
    return page.link
