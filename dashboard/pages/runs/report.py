"""Runs, the queue, schedules and machines as the parts of a report."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pandas as pd

from dashboard.api.representation import rows_of
from dashboard.links.links import Link
from dashboard.pages.runs import content
from dashboard.read.data import read_choices, read_hosts, read_machines, read_noise_floors, read_schedules
from dashboard.read.snapshots import Snapshot
from dashboard.reports.content import Frozen, Lines, Section, nothing_fits
from dashboard.reports.tables import table_of
from db.metrics.groups import row_dicts
from db.wording import units

_QUEUE = {
    "state": "State",
    "kind": "Why",
    "what": "What",
    "machine": "Machine",
    "asked_by": "Requested by",
    "asked_at": "Requested",
    "owner": "Measured by",
    "note": "Note",
    "request_id": "Request",
}
_SCHEDULES = {
    "name": "Schedule",
    "state": "State",
    "cron": "Cron",
    "timezone": "Time zone",
    "suite": "Suite",
    "machine": "Machine",
    "next_run_at": "Next firing",
    "then": "The four after it (UTC)",
    "last_fired_at": "Last firing",
    "outcome": "Its outcome",
    "changed_by": "Last paused or resumed by",
}
_MACHINES = {
    "machine": "Machine",
    "device": "Device",
    "service": "Service",
    "noise": "Smallest detectable change",
    "last_seen_at": "Last result",
    "service_seen_at": "Last heartbeat of the service",
    "disk": "Disk",
    "devices": "GPUs while idle",
    "trials": "Trials",
    "failed": "Failed",
    "device_memory": "Device memory",
    "cpu": "CPU",
    "threads": "Threads",
    "memory": "Memory",
}
_RUNS = {
    "started_at": "Started",
    "state": "State",
    "suite": "Suite",
    "machine": "Machine",
    "build": "Build",
    "progress": "Stored of planned",
    "trials": "Trials",
    "failed": "Failed",
    "label": "Label",
    "run_id": "Run",
}

_WORDS: dict[str, Callable[..., str]] = {
    "_at": units.moment,
    "trials": units.count,
    "failed": units.count,
    "threads": units.count,
    "progress": lambda percent: units.percent(percent / 100),
}
_NUMBERS = ("trials", "failed", "threads", "progress", "memory", "device_memory")


def frozen(snapshot: Snapshot, link: Link) -> Frozen:
    """What runs now, what comes next, every machine, and the runs under machine and suite of `link`."""
    choices, now = read_choices(snapshot), datetime.now(UTC)
    found, where = content.chosen(snapshot, link.machine, link.suite)
    if found.empty:
        raise nothing_fits()
    rows = content.run_rows(found, where, choices.machines, choices.builds)
    running = [content.progress_words(row, now) for row in row_dicts(rows[rows["running"]])]
    machines = content.machine_rows(
        read_machines(snapshot), content.host_words(read_hosts(), now), read_noise_floors(snapshot)
    )
    requests, unseen = content.listed_requests()
    parts: tuple[Section, ...] = (
        Lines(title="Running", lines=tuple(running)) if running else Lines(lines=("Nothing ran.",)),
        *_table("Queue", content.request_rows(requests), _QUEUE),
        *((Lines(lines=(unseen,)),) if unseen else ()),
        *_table("Schedules", content.schedule_rows(*read_schedules()), _SCHEDULES),
        *_table("Machines", machines, _MACHINES),
        *_table("Runs, newest first", rows, _RUNS),
    )
    builds = where.loc[where["run_id"].isin(found["run_id"]), "build_id"]
    return Frozen(parts, link, tuple(dict.fromkeys(builds)), {"runs": rows_of(found)})


def _table(title: str, rows: pd.DataFrame, columns: dict[str, str]) -> tuple[Section, ...]:
    """The columns of `columns` that tell anything; nothing of no rows."""
    told = {name: text for name, text in columns.items() if name in rows and rows[name].notna().any()}
    if not told:
        return ()
    texts = pd.DataFrame({name: _texts(name, rows[name]) for name in told})
    return (table_of(texts, told, title=title, numeric=_NUMBERS),)


def _texts(name: str, values: pd.Series) -> list[str | None]:
    words = next((words for end, words in _WORDS.items() if name.endswith(end)), str)
    return [None if pd.isna(value) else words(value) for value in values]
