"""Whether the watching itself goes on: schedules whose results are overdue, hosts and what waits on them."""

from __future__ import annotations

from db.fields import Bytes, Count, Record, UtcDatetime


class ScheduleWatch(Record):
    """By `due_at` the schedule must have produced a result, by its own cron; null while none is awaited."""

    schedule: str
    last_result_at: UtcDatetime | None = None
    due_at: UtcDatetime | None = None
    told_due_at: UtcDatetime | None = None

    def is_silent(self, now: UtcDatetime) -> bool:
        """Whether it has produced nothing for a whole period."""
        return self.due_at is not None and now >= self.due_at


class HostHealth(Record):
    """What waits in a host's spool, and how often the database failed its service since that was started."""

    host: str
    seen_at: UtcDatetime
    spool_trials: Count
    spool_bytes: Bytes
    database_errors: Count
