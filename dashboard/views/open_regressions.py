"""Open regressions as the Overview shows them: how many, the first by name, and the way to the inbox."""

from __future__ import annotations

import streamlit as st

from dashboard import inbox
from dashboard.foreign_text import escaped
from dashboard.links import Page
from dashboard.prepared.overview import OpenRegressions
from dashboard.views import controls, elements
from db import units
from db.regressions import TriageState

_NAMED = 3


def card(found: OpenRegressions) -> None:
    """How many there are, and whether somebody looks after them."""
    elements.card(
        "Open regressions",
        units.count(len(found.regressions)),
        explained="Recorded on this machine after a run or by a gate, and closed by nobody.",
        beside=_owners(found),
    )


def _owners(found: OpenRegressions) -> str:
    if not found.any_recorded:
        return "none ever recorded"
    if not found.regressions:
        return "all are closed"
    waiting = sum(each.state is not TriageState.ACKNOWLEDGED for each in found.regressions)
    return f"{units.count(waiting)} without owner" if waiting else "all have an owner"


def draw(found: OpenRegressions) -> None:
    """The first of them by name, and the way to all; nothing where there is none."""
    if not found.regressions:
        return
    with st.container(border=True):
        with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
            st.markdown(f"#### {units.plural(len(found.regressions), 'open regression')}", width="content")
            st.button(
                "Open the inbox", icon=":material/inbox:", on_click=controls.go, args=(Page.REGRESSIONS,)
            )
        lines = [f"- {escaped(inbox.line(each))}" for each in found.regressions[:_NAMED]]
        more = len(found.regressions) - _NAMED
        st.markdown("\n".join([*lines, *([f"- and {units.count(more)} more"] if more > 0 else [])]))
