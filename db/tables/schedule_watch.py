"""The tables of who watches the watcher: when a schedule's next result is due, and how hosts are."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Table
from sqlmodel import Field

from db.tables.metadata import METADATA, Row


class ScheduleWatchRow(Row, table=True):
    """By `due_at` a schedule owes a result; `told_due_at` is the one that people were told of."""

    schedule: str = Field(primary_key=True, foreign_key="schedule.name")
    last_result_at: datetime | None
    due_at: datetime | None
    told_due_at: datetime | None


class HostHealthRow(Row, table=True):
    """What waits in the spool of a host, and how often the database failed it since it was started."""

    host: str = Field(primary_key=True)
    seen_at: datetime
    spool_trials: int = Field(sa_type=BigInteger)
    spool_bytes: int = Field(sa_type=BigInteger)
    database_errors: int = Field(sa_type=BigInteger)


SCHEDULE_WATCH: Table = METADATA.tables["schedule_watch"]
HOST_HEALTH: Table = METADATA.tables["host_health"]
