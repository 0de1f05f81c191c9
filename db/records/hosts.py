"""Measuring hosts as their services and workers describe them."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from compilewatch.db.records.fields import Bytes, Count, Finite, Record, UtcDatetime

SILENT_AFTER = timedelta(minutes=5)
"""A service that lives says so every few seconds; one that was silent for longer is down or cut off."""


class HostDevice(Record):
    """The state of one GPU when nothing was being measured; null where the driver does not tell."""

    name: str | None = None
    uuid: str | None = None
    temperature_c: Finite | None = None
    power_w: Finite | None = None
    power_limit_w: Finite | None = None
    sm_clock_mhz: Finite | None = None
    utilization_percent: Finite | None = None
    used_bytes: Bytes | None = None
    total_bytes: Bytes | None = None
    throttle_reasons: tuple[str, ...] | None = None
    uncorrected_ecc_errors: int | None = None


class HostState(Record):
    """What the service or a worker on a host last said. `devices` is null before the first reading."""

    name: str
    owner: str
    started_at: UtcDatetime
    seen_at: UtcDatetime
    stopped_at: UtcDatetime | None = None
    program_version: str
    free_bytes: Bytes | None = None
    total_bytes: Bytes | None = None
    devices: tuple[HostDevice, ...] | None = None
    devices_read_at: UtcDatetime | None = None


class HostHealth(Record):
    """What waits in a host's spool, and how often the database failed its service since that was started."""

    host: str
    seen_at: UtcDatetime
    spool_trials: Count
    spool_bytes: Bytes
    database_errors: Count


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
