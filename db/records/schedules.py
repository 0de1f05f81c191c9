"""Schedules and their firings: when a suite is to be measured, when it was, whether it is overdue."""

from __future__ import annotations

from enum import StrEnum

from pydantic import AwareDatetime

from compilewatch.db.records.fields import Record, UtcDatetime


class ScheduleSpec(Record):
    """What a schedule says. `cron` has five fields; `machine` is a pattern of host names, None any."""

    cron: str
    timezone: str = "UTC"
    suite: str | None = None
    trials: int | None = None
    machine: str | None = None


class Schedule(Record):
    """A schedule as it stands. `from_config` ones fire only where the configuration still has them.

    Firings before `active_since` are not made up for: it was new, changed or paused then. `upcoming` are the
    next firings as the service that keeps it planned them, null while none does. `changed_by` is who paused
    or resumed it last.
    """

    name: str
    spec: ScheduleSpec
    from_config: bool
    paused: bool
    active_since: AwareDatetime
    next_run_at: AwareDatetime | None = None
    upcoming: tuple[AwareDatetime, ...] | None = None
    changed_at: AwareDatetime | None = None
    changed_by: str | None = None


class FiringOutcome(StrEnum):
    """`missed`: noticed too late to be worth it. `overrun`: the one before was not done yet."""

    QUEUED = "queued"
    MISSED = "missed"
    OVERRUN = "overrun"


class Firing(Record):
    """One firing, claimed by exactly one service. `firings` counts itself and missed ones without a row."""

    schedule: str
    fire_at: AwareDatetime
    owner: str
    claimed_at: AwareDatetime
    outcome: FiringOutcome
    firings: int
    request_id: str | None = None


class ScheduleWatch(Record):
    """By `due_at` the schedule must have produced a result, by its own cron; null while none is awaited."""

    schedule: str
    last_result_at: UtcDatetime | None = None
    due_at: UtcDatetime | None = None
    told_due_at: UtcDatetime | None = None

    def is_silent(self, now: UtcDatetime) -> bool:
        """Whether it has produced nothing for a whole period."""
        return self.due_at is not None and now >= self.due_at
