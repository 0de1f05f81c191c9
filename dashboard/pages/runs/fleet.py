"""What the page Runs says of a fleet: its workers, and the launches that were to bring them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import pandas as pd

from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.parts import Lines, Part, TableColumn, informative
from compilewatch.db import units
from compilewatch.db.records.hosts import SILENT_AFTER, FleetWorker, Launch, LaunchState

WORKERS, LAUNCHES = "runs-workers", "runs-launches"
STOPPED_WITHIN = timedelta(days=1)
"""Workers that stopped longer ago are left out: where they come from zero, a day has many."""
_WORKERS = {
    "owner": TableColumn("Worker", pinned=True),
    **parts.texts({"state": "State", "queue": "Machine type", "served": "Measures on"}),
    "measured": TableColumn("Trials", kind="number"),
    "started_at": TableColumn("Started (UTC)", kind="moment"),
    "seen_at": TableColumn("Last heartbeat (UTC)", kind="moment"),
}
_LAUNCHES = {
    "launched_at": TableColumn("Launched (UTC)", kind="moment", pinned=True),
    **parts.texts({"state": "State", "queue": "Machine type", "host": "Launched by"}),
    "exit_code": TableColumn("Exit code", kind="number"),
    "worker": TableColumn("Worker that came"),
    "last_line": TableColumn("Last line of its output", wide=True),
}
_MARKS = {
    LaunchState.RUNNING: "▶",
    LaunchState.PENDING: "○",
    LaunchState.STARTED: "✓",
    LaunchState.NO_WORKER: "✗",
    LaunchState.FAILED: "✗",
}


def fleet(workers: Iterable[FleetWorker], launches: Sequence[Launch], now: datetime) -> tuple[Part, ...]:
    """Workers and launches as tables, and the output of a machine type's newest launch where it failed.

    Nothing where there is no fleet. `launches` are newest first.
    """
    rows = pd.DataFrame(
        [
            each.model_dump() | {"state": liveness(each.seen_at, each.stopped_at, now)}
            for each in workers
            if each.stopped_at is None or now - each.stopped_at <= STOPPED_WITHIN
        ]
    )
    launched = _launch_rows(launches, now)
    live = 0 if rows.empty else int((rows["state"] == RUNNING).sum())
    return (
        *parts.table(
            WORKERS,
            "Workers of the fleet with their state, machine type and trials",
            rows,
            _WORKERS,
            title="Workers",
            note=f"{live} of {units.plural(len(rows), 'worker')} running.",
        ),
        *parts.table(
            LAUNCHES,
            "The newest launches of workers with what became of them",
            launched,
            informative(_LAUNCHES, launched),
            title="Launches of workers, newest first",
        ),
        *(output_of(launch) for launch in _failing(launches, now)),
    )


def output_of(launch: Launch) -> Lines:
    """What the command of `launch` printed, as it is."""
    title = f"Output of the launch for {launch.queue}, {units.moment(launch.launched_at)}"
    return Lines(tuple(launch.output.splitlines()) or ("It printed nothing.",), title, code=True)


RUNNING = "● running"


def liveness(seen_at: datetime, stopped_at: datetime | None, now: datetime) -> str:
    """Whether a service or a worker lives that was last heard of at `seen_at`."""
    if stopped_at is not None and stopped_at >= seen_at:
        return "○ stopped"
    silent = now - seen_at
    return (
        RUNNING if silent <= SILENT_AFTER else f"✗ silent for {units.duration(silent.total_seconds() * 1e9)}"
    )


def _launch_rows(launches: Iterable[Launch], now: datetime) -> pd.DataFrame:
    """One row per launch, in the order given, with what has become of it by `now`."""
    return pd.DataFrame(
        [
            launch.model_dump()
            | {
                "state": f"{_MARKS[launch.state(now)]} {launch.state(now).value}",
                "last_line": launch.output.strip().rpartition("\n")[2] or None,
            }
            for launch in launches
        ]
    )


def _failing(launches: Iterable[Launch], now: datetime) -> list[Launch]:
    """The newest launch of each machine type, where it brought no worker."""
    newest: dict[str, Launch] = {}
    for launch in launches:
        newest.setdefault(launch.queue, launch)
    return [
        each for each in newest.values() if each.state(now) in (LaunchState.FAILED, LaunchState.NO_WORKER)
    ]
