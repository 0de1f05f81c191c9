"""Machines: two of them side by side, with a price of an hour for each."""

from __future__ import annotations

import streamlit as st

from compilewatch.dashboard.links.links import PRICE, Link
from compilewatch.dashboard.pages.machines import content
from compilewatch.dashboard.parts.cases import models_of
from compilewatch.dashboard.read.data import read_choices
from compilewatch.dashboard.render import controls, streamlit_parts
from compilewatch.dashboard.render.shell import View, strategies, tab


def draw(view: View) -> Link:
    """The two machines that were chosen, of all models or of the one in focus."""
    page = content.page(view.link)
    with tab(view, page, models_of(view.link)) as parts:
        strategies(view)
        _choices(page.link)
        streamlit_parts.draw(parts)
    return page.link


def _choices(link: Link) -> None:
    """The other machine, and what an hour of each costs."""
    if link.against is None:
        return
    names, help_ = (
        read_choices().machine_names,
        "What an hour of this machine costs, for the price of a million items.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=280):
            controls.one_of("against", "Set against", content.others(link), shown=link.against)
        for key, machine in (("price", link.machine), ("against_price", link.against)):
            with st.container(width=240):
                controls.number(key, f"{names.get(str(machine), machine)}, $ an hour", PRICE, help_=help_)
