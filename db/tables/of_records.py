"""The tables of what `db.records` has field by field: what people wrote, what services and hosts said.

A new field of such a record is a column, and a migration.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index, Integer, Table
from sqlmodel import Field

from compilewatch.db.records.hosts import FleetWorker, HostHealth, HostState, Launch
from compilewatch.db.records.people import (
    Annotation,
    IssueScript,
    NotificationState,
    Report,
    StoredView,
    TriageState,
)
from compilewatch.db.records.requests import RunRequest
from compilewatch.db.records.schedules import Firing, Schedule, ScheduleWatch
from compilewatch.db.records.tokens import Token
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.tables.metadata import KEY, METADATA, Row, by_value, table_of

_MACHINE: dict[str, Any] = {"foreign_key": "machine.machine_id"}
_BUILD: dict[str, Any] = {"foreign_key": "build.build_id"}
_SCHEDULE: dict[str, Any] = {"primary_key": True, "foreign_key": "schedule.name"}

ANNOTATION: Table = table_of(
    "annotation", Annotation, annotation_id=KEY, build_id=_BUILD, machine_id=_MACHINE
)
ISSUE_SCRIPT: Table = table_of("issue_script", IssueScript, issue_id=KEY)
STORED_VIEW: Table = table_of("stored_view", StoredView, view_id=KEY)
REPORT: Table = table_of("report", Report, report_id=KEY)
"""Revoking a report takes the content away and leaves that it was there."""
API_TOKEN: Table = table_of("api_token", Token, token_id=KEY, secret_hash={"index": True, "unique": True})
FLEET_WORKER: Table = table_of("fleet_worker", FleetWorker, owner=KEY)
FLEET_LAUNCH: Table = table_of(
    "fleet_launch", Launch, launch_id=KEY, queue={"index": True}, exit_code={"sa_type": Integer}
)
HOST: Table = table_of("host", HostState, name=KEY)
HOST_HEALTH: Table = table_of("host_health", HostHealth, host=KEY)
SCHEDULE: Table = table_of("schedule", Schedule, name=KEY)
SCHEDULE_WATCH: Table = table_of("schedule_watch", ScheduleWatch, schedule=_SCHEDULE)
RUN_REQUEST: Table = table_of("run_request", RunRequest, request_id=KEY)
Index(None, RUN_REQUEST.c.state, RUN_REQUEST.c.priority, RUN_REQUEST.c.asked_at)
FIRING: Table = table_of(
    "firing", Firing, schedule=_SCHEDULE, fire_at=KEY, request_id={"foreign_key": "run_request.request_id"}
)
"""The key is the claim: of any number of services only one can insert a firing."""


class RegressionRow(Row, table=True):
    """A verdict that stood when it was recorded, frozen in `document`; never changed, only revised.

    `base_key` and `head_key` say what was compared (`db.judge.compare.recorded_regressions.side_keys`). A
    verdict that replaces another has the next `revision` and names the old one in `revises`.
    """

    __table_args__ = (
        Index(None, "series_id", "metric", "base_key", "head_key", "revision", unique=True),
        Index(None, "base_key", "head_key"),
        Index(None, "recorded_at"),
        Index(None, "revises"),
    )

    regression_id: str = Field(primary_key=True)
    series_id: str = Field(foreign_key="series.series_id")
    metric: Metric = Field(sa_type=by_value(Metric))
    base_key: str
    head_key: str
    revision: int = Field(sa_type=BigInteger)
    revises: str | None = Field(foreign_key="regression.regression_id")
    verdict: Verdict = Field(sa_type=by_value(Verdict))
    recorded_at: datetime
    document: dict[str, Any] = Field(sa_type=JSON)


class TriageEventRow(Row, table=True):
    """Who said what about a regression, and when. The highest `number` is its state; none means new."""

    regression_id: str = Field(primary_key=True, foreign_key="regression.regression_id")
    number: int = Field(primary_key=True, sa_type=BigInteger, sa_column_kwargs={"autoincrement": False})
    state: TriageState = Field(sa_type=by_value(TriageState))
    author: str
    at: datetime
    note: str | None
    url: str | None


class NotificationRow(Row, table=True):
    """That a regression is to be told, or was, on one channel; addresses are not stored."""

    __table_args__ = (Index(None, "channel", "state"),)

    regression_id: str = Field(primary_key=True, foreign_key="regression.regression_id")
    channel: str = Field(primary_key=True)
    state: NotificationState = Field(sa_type=by_value(NotificationState))
    deliveries: int = Field(sa_type=BigInteger)
    changed_at: datetime
    problem: str | None


REGRESSION: Table = METADATA.tables["regression"]
TRIAGE_EVENT: Table = METADATA.tables["triage_event"]
NOTIFICATION: Table = METADATA.tables["notification"]
