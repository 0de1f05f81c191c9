"""Runs: what is measured now and what comes next, the machines, and every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.links.links import Link, Page
from dashboard.pages.runs import content, forms, upload
from dashboard.read.data import read_choices, read_hosts, read_machines, read_noise_floors, read_schedules
from dashboard.read.snapshots import Snapshot, cached
from dashboard.render import controls, elements, silence
from dashboard.render import forms as telling
from dashboard.render.foreign_text import escaped
from dashboard.render.shell import View
from db.metrics.groups import row_dicts
from db.records.schedules import HostState
from db.wording import units


@cached
def _runs(snapshot: Snapshot, machine: str | None, suite: str | None) -> pd.DataFrame:
    choices = read_choices(snapshot)
    found, parts = content.chosen(snapshot, machine, suite)
    return content.run_rows(found, parts, choices.machines, choices.builds)


@cached
def _running_rows(snapshot: Snapshot, machine: str | None, suite: str | None) -> list[dict[str, Any]]:
    rows = _runs(snapshot, machine, suite)
    return [] if rows.empty else row_dicts(rows[rows["running"]])


@cached
def _machine_rows(snapshot: Snapshot, hosts: tuple[content.HostWords, ...]) -> pd.DataFrame:
    return content.machine_rows(read_machines(snapshot), hosts, read_noise_floors(snapshot))


def draw(view: View) -> Link:
    """The page; machine and suite of the link choose among the runs alone."""
    silence.draw()
    telling.tell(forms.PAGE)
    chosen = view.snapshot, view.link.machine, view.link.suite
    rows = _runs(*chosen)
    hosts = read_hosts()
    _running(_running_rows(*chosen))
    _queue(view, hosts)
    _schedules()
    _machines(view, hosts)
    _every_run(rows)
    upload.draw()
    return view.link


def _running(rows: Sequence[Mapping[str, Any]]) -> None:
    with st.container(border=True):
        if not rows:
            elements.finding("Nothing runs now")
            elements.note("A run that begins now appears here with its progress.")
            return
        elements.finding(f"{units.plural(len(rows), 'run')} now")
        now = datetime.now(UTC)
        for row in rows:
            words = content.progress_words(row, now)
            share = 0.0 if pd.isna(row["progress"]) else float(row["progress"]) / 100
            st.progress(share, text=escaped(f"{words} (run {row['run_id']})"))


def _queue(view: View, hosts: Sequence[HostState]) -> None:
    requests, unseen = content.listed_requests()
    table = content.request_rows(requests)
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.markdown("#### Queue", width="content")
        if forms.may_operate():
            forms.ask_for_run(view, hosts)
    if table.empty:
        elements.note("No request yet. Create one here or with compilewatch request create.")
        return
    elements.table(
        table,
        {
            "state": st.column_config.TextColumn("State", pinned=True),
            "kind": "Why",
            "what": st.column_config.TextColumn("What", width="medium"),
            "machine": "Machine",
            "asked_by": "Requested by",
            "asked_at": elements.moment_column("Requested (UTC)"),
            "owner": "Measured by",
            "note": "Note",
            "request_id": "Request",
        },
        key="runs-queue",
        alt="Run requests: those being measured, the queue in its order, and those that ended last",
        on_select="rerun",
        values=requests,
    )
    if unseen:
        elements.note(unseen)
    request = elements.picked_value("runs-queue")
    if request is not None:
        forms.about_request(request)


def _schedules() -> None:
    schedules, last = read_schedules()
    table = content.schedule_rows(schedules, last)
    st.markdown("#### Schedules")
    if table.empty:
        elements.note("No schedule is stored. Add one to the configuration of the measuring host.")
        return
    elements.table(
        table,
        {
            "name": st.column_config.TextColumn("Schedule", pinned=True),
            "state": "State",
            "cron": "Cron",
            "timezone": "Time zone",
            "suite": "Suite",
            "machine": "Machine",
            "next_run_at": elements.moment_column("Next firing (UTC)"),
            "then": "The four after it (UTC)",
            "last_fired_at": elements.moment_column("Last firing (UTC)"),
            "outcome": "Its outcome",
            "changed_by": "Last paused or resumed by",
        },
        key="runs-schedules",
        alt="Schedules with their next five firings and the last one",
        on_select="rerun",
        values=schedules,
    )
    schedule = elements.picked_value("runs-schedules")
    if schedule is not None:
        forms.about_schedule(schedule)
    elif forms.may_operate():
        elements.note("Choose a schedule to run it now, to pause or to resume it.")


_STATES = (
    "Unannounced: measured trials without the announcement of a run, as a file holds them that "
    "compilewatch import brought in. Imported: results of another tool."
)


def _every_run(rows: pd.DataFrame) -> None:
    st.markdown("#### Runs")
    if rows.empty:
        elements.nothing_to_show("No run fits these filters.", next_step="Widen them in the sidebar.")
        return
    elements.table(
        rows,
        {
            "started_at": elements.moment_column("Started (UTC)"),
            "state": st.column_config.TextColumn("State", help=_STATES),
            "suite": "Suite",
            "machine": "Machine",
            "build": "Build",
            "progress": st.column_config.ProgressColumn(
                "Stored of planned", min_value=0, max_value=100, format="%.0f %%"
            ),
            "trials": st.column_config.NumberColumn("Trials"),
            "failed": st.column_config.NumberColumn("Failed"),
            "label": "Label",
            "run_id": "Run",
        },
        key="runs-table",
        alt="Every run with its state, suite, machine, build, stored and failed trials",
        on_select=_open_trials,
        values=list(zip(rows["run_id"], rows["machine_id"], strict=True)),
    )
    limit = f" The newest {content.NEWEST} are listed." if len(rows) >= content.NEWEST else ""
    elements.note(f"Choose a row for its trials.{limit}")


def _open_trials() -> None:
    picked = elements.picked_value("runs-table")
    if picked is not None:
        run, machine = picked
        controls.go(Page.TRIAL, run=run, machine=None if pd.isna(machine) else machine)


def _machines(view: View, hosts: Sequence[HostState]) -> None:
    st.markdown("#### Machines")
    text = st.column_config.TextColumn
    elements.table(
        _machine_rows(view.snapshot, content.host_words(hosts, datetime.now(UTC))),
        {
            "machine": text("Machine", pinned=True),
            "device": "Device",
            "service": "Service",
            "noise": text(
                "Smallest detectable change",
                help="Its noise floor: what five trials a side show.",
            ),
            "last_seen_at": elements.moment_column("Last result (UTC)"),
            "service_seen_at": elements.moment_column("Last heartbeat of the service (UTC)"),
            "disk": "Disk",
            "devices": text("GPUs while idle", width="large"),
            "trials": st.column_config.NumberColumn("Trials"),
            "failed": st.column_config.NumberColumn("Failed"),
            "device_memory": text("Device memory", alignment="right"),
            "cpu": "CPU",
            "threads": st.column_config.NumberColumn("Threads"),
            "memory": text("Memory", alignment="right"),
            "first_seen_at": elements.moment_column("First result (UTC)"),
            "machine_id": "Id",
        },
        key="runs-machines",
        alt="Every machine with its device, service, noise floor, disk and GPU state",
    )
    if not read_noise_floors(view.snapshot):
        elements.note("No machine has a noise floor yet. Measure one with: compilewatch doctor --validate.")
