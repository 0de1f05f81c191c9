"""Measuring hosts as their services and workers describe them."""

from __future__ import annotations

from datetime import timedelta

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
