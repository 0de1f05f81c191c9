"""A run: one execution of a suite on one machine, and how it stands."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class RunStatus(StrEnum):
    """A run that nobody announced (an imported one) has no status.

    `running` also stays with a run whose process was killed, until its request ends or begins anew.
    """

    RUNNING = "running"
    FINISHED = "finished"
    CANCELLED = "cancelled"


RUN_TRANSITIONS: Mapping[RunStatus | None, frozenset[RunStatus]] = {
    None: frozenset({RunStatus.RUNNING}),
    RunStatus.RUNNING: frozenset({RunStatus.FINISHED, RunStatus.CANCELLED}),
    # Whoever measured it whole knows more than who gave it up, as where its end waited on a disk.
    RunStatus.CANCELLED: frozenset({RunStatus.FINISHED}),
    RunStatus.FINISHED: frozenset(),
}
"""What a run may become; `db.store` ignores every other change. None: its trials came, no announcement."""
