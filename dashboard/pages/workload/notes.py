"""The form to write a note at a day or at a build, and to take one away."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice

import streamlit as st

from compilewatch.dashboard.charts.annotation_marks import sentence
from compilewatch.dashboard.login.access import Role, person_here
from compilewatch.dashboard.pages.workload.history import workload_of
from compilewatch.dashboard.read.data import read_annotations
from compilewatch.dashboard.render import controls, forms
from compilewatch.dashboard.render.shell import View
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.dashboard.write import writing
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.records.people import LONGEST_TEXT

PAGE = "annotate"
_EVERY_DAY = "A day"


def draw(view: View, builds: Mapping[str, str]) -> None:
    """`builds` are names by id; a note may be about those that the view offers, newest first. Nothing for who
    may only read.
    """
    if not person_here().may(Role.EDITOR):
        return
    machine, workload = view.link.machine, workload_of(view.link)
    offered = islice(reversed(view.choices.offered_builds), controls.MOST_OFFERED)
    with st.popover("Annotate", icon=":material/edit_note:", key="annotate"):
        with st.form("note", border=False):
            st.text_input("What happened", max_chars=LONGEST_TEXT, key="note-text")
            st.selectbox(
                "About",
                [None, *offered],
                format_func=lambda build: builds.get(build, _EVERY_DAY),
                key="note-build",
            )
            st.date_input("Day (UTC)", value=datetime.now(UTC).date(), key="note-day")
            st.text_input("Link", key="note-url", placeholder="https://")
            st.checkbox("This machine alone", value=True, key="note-here")
            if workload:
                st.checkbox(escaped(f"{workload} alone"), value=True, key="note-of-one")
            forms.name_field("note-name")
            st.form_submit_button("Write it", on_click=_write, args=(machine, workload))
        _removal(view, builds)


def _write(machine: str | None, workload: str | None) -> None:
    state = st.session_state

    def act(by: str) -> str:
        return writing.annotate(
            text=str(state["note-text"]),
            url=str(state["note-url"]),
            by=by,
            day=state["note-day"],
            build_id=state["note-build"],
            machine_id=machine if state["note-here"] else None,
            workload=workload if state.get("note-of-one") else None,
        )

    forms.act(PAGE, "note-name", act)


def _removal(view: View, builds: Mapping[str, str]) -> None:
    mine = read_annotations(view.link.machine, workload_of(view.link))
    known = {each.annotation_id: each for each in mine}
    if not known:
        return
    st.selectbox(
        "Remove",
        [None, *known],
        format_func=lambda key: sentence(known[key], builds) if key in known else "Choose a note",
        key="note-removed",
    )
    st.button("Remove it", key="note-remove", on_click=_remove)


def _remove() -> None:
    chosen = st.session_state.get("note-removed")
    if chosen is None:
        forms.say(PAGE, "Choose the note to remove.", done=False)
        return
    try:
        forms.say(PAGE, writing.remove(chosen))
    except CompilewatchError as error:
        forms.say(PAGE, str(error), done=False)
