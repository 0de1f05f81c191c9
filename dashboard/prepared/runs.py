"""Which runs and run requests are shown, and in how many rows."""

from __future__ import annotations

import pandas as pd

from dashboard.data import read_runs
from dashboard.snapshots import Snapshot

NEWEST = 200
ENDED_REQUESTS = 10


def chosen(snapshot: Snapshot, machine: str | None, suite: str | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Of the `NEWEST` runs those of one machine and of one suite, None for any, and the parts of all."""
    found, parts = read_runs(snapshot, NEWEST)
    if machine is not None:
        found = found[found["run_id"].isin(parts.loc[parts["machine_id"] == machine, "run_id"])]
    if suite is not None:
        found = found[found["suite"] == suite]
    return found, parts
