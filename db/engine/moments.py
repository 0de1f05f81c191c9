"""When a trial may have been measured: neither after now, nor before torch, nor ended before it began."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, text

CLOCK_SKEW = timedelta(minutes=10)
"""How far the clock of a host that measures may be ahead of the database's."""
EARLIEST = datetime(2016, 1, 1, tzinfo=UTC)
"""The year of torch's first release."""


def latest_moment(connection: Connection) -> datetime:
    """Later than this nothing can have been measured: the server's clock on PostgreSQL, else this host's."""
    if connection.dialect.name == "postgresql":
        now: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
    else:
        now = datetime.now(UTC)
    return now + CLOCK_SKEW


def wrong_moment(started_at: datetime, ended_at: datetime | None, latest: datetime) -> str | None:
    """What is wrong with the moments of a trial, as the end of a sentence that begins with the trial."""
    if ended_at is not None and ended_at < started_at:
        return f"ends at {ended_at.isoformat()}, before it begins at {started_at.isoformat()}"
    if started_at < EARLIEST:
        return f"begins at {started_at.isoformat()}, before there was torch"
    if max(started_at, ended_at or started_at) > latest:
        return f"is of {(ended_at or started_at).isoformat()}, which is not yet"
    return None
