"""Which runs and run requests are shown, and in how many rows."""

from __future__ import annotations

import pandas as pd

from dashboard.data import read_queue_length, read_requests, read_runs
from dashboard.snapshots import Snapshot
from db import units
from db.requests import RequestState, RunRequest

NEWEST = 200
QUEUED_REQUESTS = 200
ENDED_REQUESTS = 10


def chosen(snapshot: Snapshot, machine: str | None, suite: str | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Of the `NEWEST` runs those of one machine and of one suite, None for any, and the parts of all."""
    found, parts = read_runs(snapshot, NEWEST)
    if machine is not None:
        found = found[found["run_id"].isin(parts.loc[parts["machine_id"] == machine, "run_id"])]
    if suite is not None:
        found = found[found["suite"] == suite]
    return found, parts


def listed_requests() -> tuple[list[RunRequest], str | None]:
    """The requests that are shown, and a sentence about those that wait unseen, if there are any."""
    shown = read_requests(QUEUED_REQUESTS, ENDED_REQUESTS)
    queued = sum(request.state is RequestState.QUEUED for request in shown)
    unseen = read_queue_length() - queued if queued >= QUEUED_REQUESTS else 0
    if unseen <= 0:
        return shown, None
    return shown, f"The first {queued} of the queue are listed; {units.count(unseen)} more wait."
