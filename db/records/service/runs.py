"""A run: one execution of a suite on one machine, and how it stands."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum


class RunStatus(StrEnum):
    """A run that nobody announced (an imported one) has no status.

    `running` stays stored with a run whose process was killed, until its request ends or begins anew.
    """

    RUNNING = "running"
    FINISHED = "finished"
    CANCELLED = "cancelled"


INTERRUPTED = "interrupted"
"""What a run is called that is stored as running and has stored nothing for `INTERRUPTED_AFTER`."""
INTERRUPTED_AFTER = timedelta(hours=1)
"""As long as a trial may take at most (`timeout_s` of [run]). Its process was killed, or the database is a
copy that was made while it went on."""

RUN_TRANSITIONS: Mapping[RunStatus | None, frozenset[RunStatus]] = {
    None: frozenset({RunStatus.RUNNING}),
    RunStatus.RUNNING: frozenset({RunStatus.FINISHED, RunStatus.CANCELLED}),
    # Whoever measured it whole knows more than who gave it up, as where its end waited on a disk.
    RunStatus.CANCELLED: frozenset({RunStatus.FINISHED}),
    RunStatus.FINISHED: frozenset(),
}
"""What a run may become; `db.store.trials` ignores every other change. None: its trials came, no
announcement."""
