"""What operators can do on the Runs page: each asks once, says what came of it, and is recorded by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from compilewatch.dashboard.login.access import Role, person_here
from compilewatch.dashboard.render import forms as signing
from compilewatch.dashboard.render.shell import View
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.dashboard.write import writing
from compilewatch.db.records.hosts import HostState
from compilewatch.db.records.requests import UNFINISHED, RequestSpec, RunRequest, Schedule

PAGE = "runs"


def may_operate() -> bool:
    """Whether whoever drives the page may ask for runs, cancel them and pause schedules."""
    return person_here().may(Role.OPERATOR)


def ask_for_run(view: View, hosts: Sequence[HostState]) -> None:
    """Ask for a suite or for workloads on a machine, or on whichever is free first."""
    choices = view.choices
    with st.popover("Ask for a run", icon=":material/add:", key="ask-run"):
        st.selectbox(
            "Suite",
            list(choices.suites),
            index=None,
            accept_new_options=True,
            placeholder="the suite of the measuring host",
            key="ask-suite",
        )
        st.selectbox(
            "Machine",
            [host.name for host in hosts],
            index=None,
            accept_new_options=True,
            placeholder="any",
            key="ask-machine",
            help="A host name, or a pattern such as gpu-*.",
        )
        labels = dict.fromkeys(row["build_label"] for row in choices.build_rows.values())
        for label, offered, unset in (
            ("Workloads", choices.workloads, "those of the suite"),
            ("Strategies", choices.strategies, "those of the suite"),
            ("Builds", [each for each in labels if isinstance(each, str)], "those of the measuring host"),
        ):
            st.multiselect(
                label,
                list(offered),
                accept_new_options=True,
                placeholder=unset,
                key=f"ask-{label.lower()}",
                help="By the names of the measuring host's configuration.",
            )
        st.number_input(
            "Trials per case",
            min_value=1,
            value=None,
            step=1,
            placeholder="as the suite says",
            key="ask-trials",
        )
        signing.name_field("ask-name")
        st.button("Queue it", on_click=_queue, key="ask-yes")


def _queue() -> None:
    state = st.session_state
    names = ("suite", "machine", "workloads", "strategies", "builds", "trials")
    wanted = {name: typed for name in names if (typed := state.get(f"ask-{name}"))}
    signing.act(
        PAGE,
        "ask-name",
        lambda by: writing.request_run(RequestSpec.model_validate(wanted), by=by),
    )


def about_request(request: RunRequest) -> None:
    """Cancel the chosen request, if it still waits or runs."""
    if request.state not in UNFINISHED or not may_operate():
        return
    _confirmed(
        "Cancel",
        f"Request {request.request_id} of {request.asked_by}",
        icon=":material/cancel:",
        key="cancel-request",
        act=lambda by: writing.cancel_run(request.request_id, by=by),
    )


def about_schedule(schedule: Schedule) -> None:
    """Run the chosen schedule now, pause or resume it."""
    if not may_operate():
        return
    with st.container(horizontal=True):
        _confirmed(
            "Run now",
            f"What schedule {schedule.name} measures, beside its own firings",
            icon=":material/play_arrow:",
            key="run-now",
            act=lambda by: writing.run_now(schedule, by=by),
        )
        _confirmed(
            "Resume" if schedule.paused else "Pause",
            f"Schedule {schedule.name}",
            icon=":material/play_circle:" if schedule.paused else ":material/pause_circle:",
            key="pause",
            act=lambda by: writing.set_paused(schedule.name, paused=not schedule.paused, by=by),
        )


def _confirmed(title: str, what: str, *, icon: str, key: str, act: Callable[[str], str]) -> None:
    """A button that asks once: who says so, and yes."""
    with st.popover(title, icon=icon, key=key):
        st.markdown(escaped(f"{what}: {title.lower()}?"))
        signing.name_field(f"{key}-name")
        st.button("Yes", on_click=signing.act, args=(PAGE, f"{key}-name", act), key=f"{key}-yes")
