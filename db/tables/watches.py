"""The table of watches: who is told of which regressions, on which channel."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Table
from sqlmodel import Field

from db.tables.metadata import METADATA, Row


class WatchRow(Row, table=True):
    """See `db.records.people.watches.Watch`."""

    watch_id: str = Field(primary_key=True)
    key: str = Field(unique=True)
    author: str
    channel: str
    address: str | None
    machine_id: str | None = Field(foreign_key="machine.machine_id")
    workload: str | None
    daily: bool
    made_at: datetime
    told_at: datetime


WATCH: Table = METADATA.tables["watch"]
