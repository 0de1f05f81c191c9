"""Workers of a fleet, and the launches that were to bring them."""

from __future__ import annotations

from enum import StrEnum

from compilewatch.db.records.fields import Count, Record, UtcDatetime

OUTPUT_CHARACTERS = 4_000
"""The last of what a launch command printed, which is stored."""
STORED_LAUNCHES = 100
"""The newest launches of each queue."""


class FleetWorker(Record):
    """A worker as it last wrote of itself: which machine type it measures for, where, how many trials."""

    owner: str
    queue: str
    host: str
    served: str
    started_at: UtcDatetime
    seen_at: UtcDatetime
    stopped_at: UtcDatetime | None = None
    measured: Count


class LaunchState(StrEnum):
    """`pending`: the command ended well, and its worker may still come."""

    RUNNING = "running"
    PENDING = "pending"
    STARTED = "worker started"
    NO_WORKER = "no worker came"
    FAILED = "failed"


ON_THEIR_WAY = (LaunchState.RUNNING, LaunchState.PENDING)
"""A worker may still come of these."""


class Launch(Record):
    """One run of a launch command. It is under way while `ended_at` is null.

    `exit_code` is null where the command could not be started or was ended. `worker` is the owner of the
    worker that came of it; one that comes after `worker_due_at` comes late.
    """

    launch_id: str
    queue: str
    host: str
    launched_at: UtcDatetime
    worker_due_at: UtcDatetime
    ended_at: UtcDatetime | None = None
    exit_code: int | None = None
    output: str = ""
    worker: str | None = None
    worker_at: UtcDatetime | None = None

    def state(self, now: UtcDatetime) -> LaunchState:
        """What has become of it."""
        if self.worker is not None:
            return LaunchState.STARTED
        if self.ended_at is not None and self.exit_code != 0:
            return LaunchState.FAILED
        if now >= self.worker_due_at:
            return LaunchState.NO_WORKER
        return LaunchState.RUNNING if self.ended_at is None else LaunchState.PENDING
