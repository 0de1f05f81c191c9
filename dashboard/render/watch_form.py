"""*Notify me*: the form by which a reader is told of regressions of what a page shows."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from compilewatch.dashboard.login.access import Role, person_here
from compilewatch.dashboard.read.database import reader
from compilewatch.dashboard.read.in_force import in_force
from compilewatch.dashboard.render import forms
from compilewatch.dashboard.render.shell import View
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.dashboard.write import watching
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.queries.people.watches import watches
from compilewatch.db.records.people.watches import Watch

PAGE = "watch"
_WHEN = {False: "At once", True: "Once a day"}


def draw(view: View) -> None:
    """Nothing where no channel is configured, and for who may only read."""
    channels = in_force().channels
    if not channels or not person_here().may(Role.EDITOR):
        return
    machines = view.choices.machine_names
    with st.popover("Notify me", icon=":material/notifications:", key="notify-me"):
        with st.form("watch", border=False):
            st.selectbox(
                "Regressions of",
                [view.link.focus, None] if view.link.focus else [None, *view.choices.workloads],
                format_func=lambda name: name or "every workload",
                key="watch-workload",
            )
            st.selectbox(
                "On",
                [*filter(None, [view.link.machine]), None],
                format_func=lambda key: machines.get(key, "every machine"),
                key="watch-machine",
            )
            st.selectbox("Channel", list(channels), key="watch-channel")
            if any(channels.values()):
                st.text_input("Mail address", key="watch-address", placeholder="you@example.com")
            st.radio("When", list(_WHEN), format_func=_WHEN.__getitem__, horizontal=True, key="watch-daily")
            forms.name_field("watch-name")
            st.form_submit_button("Notify me", type="primary", on_click=_watch)
        forms.tell(PAGE)
        _ends(machines)


def _watch() -> None:
    state = st.session_state

    def act(by: str) -> str:
        return watching.watch(
            by=by,
            channel=str(state["watch-channel"]),
            address=str(state.get("watch-address", "")),
            machine_id=state["watch-machine"],
            workload=state["watch-workload"],
            daily=bool(state["watch-daily"]),
        )

    forms.act(PAGE, "watch-name", act)


def _ends(machines: Mapping[str, str]) -> None:
    """Of each watch who is told of what, and the way to end it."""
    for each in watches(reader()):
        what = " on ".join(
            (each.workload or "every workload", machines.get(each.machine_id or "", "every machine"))
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(escaped(f"{each.author}: {what}, {_WHEN[each.daily].lower()}, {each.channel}"))
            st.button("End", key=f"unwatch-{each.watch_id}", on_click=_end, args=(each,))


def _end(each: Watch) -> None:
    try:
        forms.say(PAGE, watching.unwatch(each.key))
    except CompilewatchError as error:
        forms.say(PAGE, str(error), done=False)
