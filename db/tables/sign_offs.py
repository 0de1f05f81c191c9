"""The table of sign-offs: who accepted or rejected an upgrade, and when."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Index, Table
from sqlmodel import Field

from db.records.people.sign_offs import Decision
from db.tables.metadata import METADATA, Row, by_value


class SignOffRow(Row, table=True):
    """What somebody decided about an upgrade on one machine. Withdrawing it leaves that it was there."""

    __table_args__ = (Index(None, "machine_id", "base_build_id", "head_build_id"),)

    sign_off_id: str = Field(primary_key=True)
    machine_id: str = Field(foreign_key="machine.machine_id")
    base_build_id: str = Field(foreign_key="build.build_id")
    head_build_id: str = Field(foreign_key="build.build_id")
    decision: Decision = Field(sa_type=by_value(Decision))
    author: str
    at: datetime
    note: str | None
    verdict: str
    data_version: int = Field(sa_type=BigInteger)
    withdrawn_at: datetime | None
    withdrawn_by: str | None


SIGN_OFF: Table = METADATA.tables["sign_off"]
