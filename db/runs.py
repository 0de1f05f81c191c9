"""A run: one execution of a suite on one machine, and how it stands."""

from __future__ import annotations

from enum import StrEnum


class RunStatus(StrEnum):
    """A run that nobody announced (an imported one) has no status.

    `running` also stays with a run whose process was killed: nobody was left to say that it ended.
    """

    RUNNING = "running"
    FINISHED = "finished"
    CANCELLED = "cancelled"
