"""Open regressions as the Overview shows them: how many, the first by name, and the way to the inbox."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from dashboard import inbox
from dashboard.data import read_regressions
from dashboard.foreign_text import escaped
from dashboard.links import Link, Page
from dashboard.snapshots import Snapshot
from dashboard.views import controls, elements
from db import units
from db.queries.regressions import RegressionState
from db.regressions import TriageState

_NAMED = 3


@dataclass(frozen=True)
class Found:
    """Those on one machine that nobody closed, newest first within their states; `any_recorded` on any."""

    regressions: list[RegressionState]
    any_recorded: bool


def find(snapshot: Snapshot, link: Link) -> Found:
    """Those of the machine, tasks and workloads of `link`."""
    recorded = read_regressions(snapshot)
    like = Link(page=Page.REGRESSIONS, machine=link.machine, task=link.task, workload=link.workload)
    shown = [each for each in inbox.chosen(recorded, like) if each.state in inbox.OPEN_STATES]
    return Found(shown, bool(recorded))


def card(found: Found) -> None:
    """How many there are, and whether somebody looks after them."""
    elements.card(
        "Open regressions",
        units.count(len(found.regressions)),
        explained="Recorded by compare, gate or the schedule on this machine, and closed by nobody.",
        beside=_owners(found),
    )


def _owners(found: Found) -> str:
    if not found.any_recorded:
        return "none ever recorded"
    if not found.regressions:
        return "all are closed"
    waiting = sum(each.state is not TriageState.ACKNOWLEDGED for each in found.regressions)
    return f"{units.count(waiting)} without owner" if waiting else "all have an owner"


def draw(found: Found) -> None:
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
