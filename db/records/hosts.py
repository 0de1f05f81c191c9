"""Measuring hosts as their services and workers describe them, and running jobs as they do themselves."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from compilewatch.db.records.fields import Bytes, Count, Finite, Key, Name, Record, UtcDatetime

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


JOB_SILENT_AFTER = timedelta(minutes=1)
"""A job that lives says so every five seconds, one of many ranks every forty at least; one that found the
dashboard away asks at least as often."""


class JobEvent(Record):
    """Something that a job compiled while requests waited."""

    number: Count
    """Counted from 1 in its process."""
    began_ns: Count
    """When it began, in nanoseconds since 1970 by the clock of its host."""
    cost_ns: Count
    """How long it took, in nanoseconds."""
    what: Name | None = None
    """Function and place, or the Triton kernel; null where torch does not tell."""
    reason: Key | None = None
    """The guard that failed; null for the first of a function."""
    request: Key | None = None
    """What the job called the request that waited; null where it did not."""


class JobReport(Record):
    """What a process of a running job says of itself: all so far, so that saying it twice changes nothing."""

    process: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    """The id of its recording."""
    sequence: Count
    """Grows with each report."""
    job: Name
    host: Name
    launch: Key = ""
    """Equal for the ranks of one launch."""
    rank: Count | None = None
    ready: bool = False
    ended: bool = False
    """Whether the process, or its recording, has come to an end."""
    steps: Count = 0
    compiling: Name | None = None
    """The function that is compiled now; null where nothing is."""
    compiling_ns: Count | None = None
    """For how long so far, in nanoseconds; null where nothing is."""
    since_step_ns: Count | None = None
    """How long ago its last step ended, in nanoseconds; null before the first."""
    compiles_after_ready: Count = 0
    cost_after_ready_ns: Count = 0
    """Time of them, in nanoseconds."""
    cache_hits: Count = 0
    """Graphs that a cache had."""
    cache_misses: Count = 0
    cache_bypasses: Count = 0
    dropped: Count = 0
    """Events that were never sent, since nobody took them in time; the file has them."""
    events: Annotated[tuple[JobEvent, ...], Field(max_length=20)] = ()
    """The newest compilations after ready."""


class JobState(JobReport):
    """The newest report of a process, by the clock of who received it."""

    seen_at: UtcDatetime
    compiling_since: UtcDatetime | None = None
    stepped_at: UtcDatetime | None = None
    compiled_at: UtcDatetime | None = None
    """When its first compilation after ready was heard of."""
    told_at: UtcDatetime | None = None
    """When people were told of them."""

    def is_live(self, now: UtcDatetime) -> bool:
        """Whether it runs, as far as anybody knows."""
        return not self.ended and now - self.seen_at <= JOB_SILENT_AFTER
