"""Sizes: throughput over batch and other sizes, sweep by sweep."""

from __future__ import annotations

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.pages.sizes import content
from compilewatch.dashboard.parts.cases import models_of
from compilewatch.dashboard.render import streamlit_parts
from compilewatch.dashboard.render.shell import View, strategies, tab


def draw(view: View) -> Link:
    """The sweeps of all models, or that of the one in focus."""
    page = content.page(view.link)
    with tab(view, page, models_of(view.link)) as parts:
        strategies(view)
        streamlit_parts.draw(parts)
    return page.link
