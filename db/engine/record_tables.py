"""What all tables share: their metadata, the base of their rows, and column types.

The tables of what `db.records` has field by field: what people wrote, what services and hosts said.

A new field of such a record is a column, and a migration.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from types import NoneType
from typing import Any, get_args

from pydantic import AwareDatetime, BaseModel, create_model
from sqlalchemy import JSON, BigInteger, Enum, Index, Integer, MetaData, Table
from sqlalchemy.orm import declared_attr, registry
from sqlmodel import Field, SQLModel

from compilewatch.db.records.access import Token
from compilewatch.db.records.hosts import FleetWorker, HostHealth, HostState, JobState, Launch
from compilewatch.db.records.people import (
    Annotation,
    IssueScript,
    NotificationState,
    Report,
    StoredView,
    TriageState,
)
from compilewatch.db.records.requests import Firing, RunRequest, Schedule, ScheduleWatch
from compilewatch.db.records.vocabulary import Metric, Verdict

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class JsonText(str):
    """JSON that is written already; a JSON column takes it as it is."""

    __slots__ = ()


def by_value(enum: type[StrEnum]) -> Enum:
    """Text column holding the enum's values; a value that a later release adds needs no migration."""
    return Enum(
        enum,
        native_enum=False,
        length=32,
        create_constraint=False,
        validate_strings=True,
        values_callable=lambda members: [member.value for member in members],
    )


class Row(SQLModel, registry=registry(metadata=METADATA)):
    """Base of all tables, on a registry of their own: a reloaded module builds them anew."""

    # Rows are of validated records, so nothing validates them.
    model_config = {"defer_build": True}

    @declared_attr  # type: ignore[arg-type]
    def __tablename__(cls) -> str:  # noqa: N805
        """`trial_detail` of `TrialDetailRow`."""
        return re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__.removesuffix("Row")).lower()


class Tallied(SQLModel):
    """What the facets show of every dimension, kept at write time; a cancelled trial has not failed."""

    model_config = {"defer_build": True}

    trials: int = Field(default=0, sa_type=BigInteger)
    failed_trials: int = Field(default=0, sa_type=BigInteger)
    cancelled_trials: int = Field(sa_type=BigInteger, sa_column_kwargs={"server_default": "0"})
    first_seen_at: datetime | None = None
    last_seen_at: datetime | None = None


KEY: dict[str, Any] = {"primary_key": True}
"""What `table_of` is told of a column that is the key, or a part of it."""


def table_of(
    name: str,
    record: type[BaseModel],
    /,
    *more: type[SQLModel],
    without: Collection[str] = (),
    **options: dict[str, Any],
) -> Table:
    """The table of what `record` describes, a column for each field that is not left out: parts are JSON.

    `options` are those of columns by their names; one that is no field is a text before all others.
    """
    fields = {column: field for column, field in record.model_fields.items() if column not in without}
    columns: dict[str, Any] = {
        each: (str, Field(**own)) for each, own in options.items() if each not in fields
    }
    for column, field in fields.items():
        is_optional = NoneType in get_args(field.annotation)
        kind: Any = get_args(field.annotation)[0] if is_optional else field.annotation
        kind = datetime if kind is AwareDatetime else getattr(kind, "__origin__", kind)
        own: dict[str, Any] = {}
        if issubclass(kind, StrEnum):
            own["sa_type"] = by_value(kind)
        elif not issubclass(kind, str | float | bool | datetime):
            own["sa_type"] = BigInteger if kind is int else JSON(none_as_null=is_optional)
        columns[column] = (kind | None if is_optional else kind, Field(**own | options.get(column, {})))
    bases: Any = (Row, *more)
    create_model(name, __base__=bases, __module__=__name__, __cls_kwargs__={"table": True}, **columns)
    METADATA.tables[name].info[_RECORD] = record
    return METADATA.tables[name]


_RECORD = "record"


def record_of(table: Table) -> type[BaseModel] | None:
    """What `table_of` made `table` of; None for a table that is no record's."""
    record: type[BaseModel] | None = table.info.get(_RECORD)
    return record


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
JOB_STATE: Table = table_of("job_state", JobState, process=KEY, job={"index": True})
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
