"""The tables of the service: schedules, their firings, and the queue of what to measure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index, Table
from sqlmodel import Field

from db.records.service.requests import RequestKind, RequestState
from db.records.service.schedules import FiringOutcome
from db.tables.metadata import METADATA, Row, by_value


class ScheduleRow(Row, table=True):
    """What is measured when; `spec` as in `db.records.service.schedules`, `upcoming` its next firings."""

    name: str = Field(primary_key=True)
    spec: dict[str, Any] = Field(sa_type=JSON)
    from_config: bool
    paused: bool
    active_since: datetime
    next_run_at: datetime | None
    upcoming: list[str] | None = Field(default=None, sa_type=JSON(none_as_null=True))
    changed_at: datetime | None = None
    changed_by: str | None = None


class RunRequestRow(Row, table=True):
    """The queue of what to measure, and its past; `spec`, `history` as in `db.records.service.requests`."""

    __table_args__ = (Index(None, "state", "priority", "asked_at"),)

    request_id: str = Field(primary_key=True)
    kind: RequestKind = Field(sa_type=by_value(RequestKind))
    priority: int = Field(sa_type=BigInteger)
    spec: dict[str, Any] = Field(sa_type=JSON)
    asked_by: str
    asked_at: datetime
    state: RequestState = Field(sa_type=by_value(RequestState))
    cancel_asked: bool
    owner: str | None
    attempts: int = Field(sa_type=BigInteger)
    beat: int = Field(sa_type=BigInteger)
    run_ids: list[str] = Field(sa_type=JSON)
    history: list[dict[str, Any]] = Field(sa_type=JSON)


class FiringRow(Row, table=True):
    """The key is the claim: of any number of services only one can insert a firing."""

    schedule: str = Field(primary_key=True, foreign_key="schedule.name")
    fire_at: datetime = Field(primary_key=True)
    owner: str
    claimed_at: datetime
    outcome: FiringOutcome = Field(sa_type=by_value(FiringOutcome))
    firings: int = Field(sa_type=BigInteger)
    request_id: str | None = Field(foreign_key="run_request.request_id")


SCHEDULE: Table = METADATA.tables["schedule"]
RUN_REQUEST: Table = METADATA.tables["run_request"]
FIRING: Table = METADATA.tables["firing"]
