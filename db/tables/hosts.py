"""The table of measuring hosts: that their service lives, and what their disk and devices are like."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Table
from sqlmodel import Field

from db.tables.metadata import METADATA, Row


class HostRow(Row, table=True):
    """What the service of a host last said of it; `devices` are those of `db.records.service.hosts`."""

    name: str = Field(primary_key=True)
    owner: str
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    program_version: str
    free_bytes: int | None = Field(sa_type=BigInteger)
    total_bytes: int | None = Field(sa_type=BigInteger)
    devices: list[dict[str, Any]] | None = Field(sa_type=JSON(none_as_null=True))
    devices_read_at: datetime | None


HOST: Table = METADATA.tables["host"]
