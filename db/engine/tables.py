"""The tables of trials; docs/change/index.md adds a figure to them.

They hold what `db.records.trial` validated; nothing here is ever handed to a caller of `db`.

A trial is spread over three tables by how it is read. `trial` is narrow: what pages filter, group and plot.
`trial_detail` holds the nested parts of the record as JSON, `trial_samples` the arrays as blobs. What follows
from a trial by plain arithmetic (medians, counts, the newest run of a series) is kept at write time; a
verdict never is. JSON columns are `json`, not `jsonb`: jsonb turns 1e23 into an integer, and a record must
come back exactly as it was.

What trials of a run come to, case by case and build by build, so that no page sums them up.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import create_model
from sqlalchemy import JSON, BigInteger, Index, Table
from sqlmodel import Field

from compilewatch.db.columns.column import Column, Kind
from compilewatch.db.columns.metrics import POINT_KEYS, STORED_POINT
from compilewatch.db.columns.trial import STORED
from compilewatch.db.engine.record_tables import (
    ANNOTATION,
    API_TOKEN,
    FIRING,
    FLEET_LAUNCH,
    FLEET_WORKER,
    HOST,
    HOST_HEALTH,
    ISSUE_SCRIPT,
    JOB_STATE,
    KEY,
    METADATA,
    NOTIFICATION,
    REGRESSION,
    REPORT,
    RUN_REQUEST,
    SCHEDULE,
    SCHEDULE_WATCH,
    STORED_VIEW,
    TRIAGE_EVENT,
    Row,
    Tallied,
    by_value,
    table_of,
)
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.records.trial import CONTROL_TIMES, DEVICE_TIMES, Build, Machine, Strategy, Workload

_POINT_TYPES: dict[str, type] = {
    **{"str": str, "Int64": int, "Float64": float, "bool": bool, "datetime64[us, UTC]": datetime},
}
_ALWAYS_THERE = ("bool", "datetime64[us, UTC]")


def _point_field(name: str, dtype: str) -> tuple[Any, Any]:
    options: dict[str, Any] = {"sa_type": BigInteger} if dtype == "Int64" else {}
    if name in POINT_KEYS:
        # Of a record without settings the conditions are an empty text, and no row of their own.
        if name != "conditions_id":
            options["foreign_key"] = f"{name.removesuffix('_id')}.{name}"
        return str, Field(primary_key=True, **options)
    kind = _POINT_TYPES[dtype]
    return (kind if dtype in _ALWAYS_THERE else kind | None), Field(**options)


_OF_POINT: dict[str, Any] = {name: _point_field(name, dtype) for name, dtype in STORED_POINT.items()}
RunCaseRow = create_model(
    "RunCaseRow",
    __base__=Row,
    __module__=__name__,
    __doc__="One row per run, build, series and conditions, as `db.metrics.trend.run_points` gives it.",
    __cls_kwargs__={"table": True},
    **_OF_POINT,
)
RUN_CASE: Table = METADATA.tables["run_case"]
# The history of a series, and its newest part.
Index(None, RUN_CASE.c.series_id, RUN_CASE.c.last_started_at)


class RunPartRow(Row, table=True):
    """The trials that a run, a machine and a build have in common, so that no page groups over all trials to
    find which builds a machine measured, and when. Almost every run has one row.
    """

    __table_args__ = (Index(None, "machine_id", "last_seen_at"),)

    run_id: str = Field(primary_key=True, foreign_key="run.run_id")
    machine_id: str = Field(primary_key=True, foreign_key="machine.machine_id")
    build_id: str = Field(primary_key=True, foreign_key="build.build_id")
    trials: int = Field(sa_type=BigInteger)
    first_seen_at: datetime
    last_seen_at: datetime


RUN_PART: Table = METADATA.tables["run_part"]


# METADATA is complete for whoever takes it from here: every table below is registered with it, and those of
# other files.
__all__ = [
    "ANNOTATION", "API_TOKEN", "FIRING", "FLEET_LAUNCH", "FLEET_WORKER", "HOST", "HOST_HEALTH",
    "ISSUE_SCRIPT", "JOB_STATE", "METADATA", "NOTIFICATION", "REGRESSION", "REPORT", "RUN_CASE", "RUN_PART",
    "RUN_REQUEST", "SCHEDULE", "SCHEDULE_WATCH", "STORED_VIEW", "TRIAGE_EVENT",
]  # fmt: skip


_NAME: dict[str, Any] = {"index": True}
MACHINE: Table = table_of("machine", Machine, Tallied, without={"device_uuid"}, machine_id=KEY)
"""Hardware by identity. `name` is what it was last called; each trial keeps the name it was given."""
BUILD: Table = table_of(
    *("build", Build, Tallied), without={"settings", "label"}, build_id=KEY, label={"nullable": True}
)
"""Software stack by identity. `label` is what it was last called; each trial keeps its own."""
WORKLOAD: Table = table_of(*("workload", Workload, Tallied), without={"reason"}, workload_id=KEY, name=_NAME)
STRATEGY: Table = table_of(*("strategy", Strategy, Tallied), without={"reason"}, strategy_id=KEY, name=_NAME)


class ConditionsRow(Row, table=True):
    """The settings that trials were measured under, by identity: no part of the build."""

    conditions_id: str = Field(primary_key=True)
    settings: dict[str, Any] = Field(sa_type=JSON)


class SeriesRow(Row, Tallied, table=True):
    """The history of one case on one machine."""

    __table_args__ = (
        Index(None, "machine_id", "workload_id", "strategy_id", unique=True),
        Index(None, "workload_id"),
        Index(None, "strategy_id"),
    )

    series_id: str = Field(primary_key=True)
    machine_id: str = Field(foreign_key="machine.machine_id")
    workload_id: str = Field(foreign_key="workload.workload_id")
    strategy_id: str = Field(foreign_key="strategy.strategy_id")


class RunRow(Row, Tallied, table=True):
    """A run that was announced has `started_at` and `status`; one known only from its trials has neither.

    `advice` is what `compilewatch advise` found when it last ended, as its JSON document.
    """

    run_id: str = Field(primary_key=True)
    suite: str | None
    label: str | None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    planned_trials: int | None = Field(default=None, sa_type=BigInteger)
    status: RunStatus | None = Field(default=None, sa_type=by_value(RunStatus))
    advice: dict[str, Any] | None = Field(default=None, sa_type=JSON(none_as_null=True))


_REFERENCES = {"series_id": "series.series_id", "build_id": "build.build_id", "run_id": "run.run_id"}
_TYPES: dict[Kind, type] = {
    **{Kind.TEXT: str, Kind.MOMENT: datetime, Kind.INTEGER: int, Kind.FLOAT: float, Kind.FLAG: bool},
}


def _field(column: Column) -> tuple[Any, Any]:
    """Type and field of a column of the table `trial`."""
    kind = column.choices or _TYPES[column.kind]
    options: dict[str, Any] = {}
    if column.choices is not None:
        options["sa_type"] = by_value(column.choices)
    elif column.kind is Kind.INTEGER:
        options["sa_type"] = BigInteger
    if column.column in _REFERENCES:
        options["foreign_key"] = _REFERENCES[column.column]
    if column.column == "trial_id":
        options["primary_key"] = True
    if column.column == "record_version":
        options["sa_column_kwargs"] = {"server_default": "1"}
    return (kind if column.required else kind | None), Field(**options)


_OF_TRIAL: dict[str, Any] = {each.at: _field(each) for each in STORED}
TrialRow = create_model(
    "TrialRow",
    __base__=Row,
    __module__=__name__,
    __doc__="One trial, narrow: identity, outcome and figures by plain arithmetic, as `db.columns` has them.",
    __cls_kwargs__={"table": True},
    **_OF_TRIAL,
)


DETAIL_PARTS = (
    *("failure", "cold_start", "summary", "memory", "compiler", "numerics", "device_state", "host_state"),
    *("sampling", "profile", "trace", "stream", "timing", "code"),
)
"""The parts of a trial's record, each a column of the table `trial_detail`."""
_OF_DETAIL: dict[str, Any] = {
    "trial_id": (str, Field(primary_key=True, foreign_key="trial.trial_id", ondelete="CASCADE")),
    **{part: (dict[str, Any] | None, Field(sa_type=JSON(none_as_null=True))) for part in DETAIL_PARTS},
}
TrialDetailRow = create_model(
    "TrialDetailRow",
    __base__=Row,
    __module__=__name__,
    __doc__="The nested parts of a trial's record, each as the JSON it has there, without what is null.",
    __cls_kwargs__={"table": True},
    **_OF_DETAIL,
)


class TrialSamplesRow(Row, table=True):
    """One array of a trial: `kind` is its field in the record, `db.records.sample_blobs` reads `data`."""

    __table_args__ = ({"sqlite_with_rowid": False},)

    trial_id: str = Field(primary_key=True, foreign_key="trial.trial_id", ondelete="CASCADE")
    kind: str = Field(primary_key=True)
    n: int = Field(sa_type=BigInteger)
    codec: str
    data: bytes


class LatestRow(Row, table=True):
    """The newest run of every series, so that no page groups over all trials to find it."""

    series_id: str = Field(primary_key=True, foreign_key="series.series_id")
    run_id: str = Field(foreign_key="run.run_id")
    started_at: datetime


class DataVersionRow(Row, table=True):
    """One row that counts the writes; whoever caches a read keeps it until this changes.

    `run_case_edition` is the `db.columns.metrics.EDITION` that made all of `run_case`.
    """

    id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    version: int = Field(sa_type=BigInteger)
    run_case_edition: int = Field(default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"})


SAMPLE_KINDS = (
    *("warmup_ns", "samples_ns", "control_warmup_ns", "control_samples_ns"),
    *("host_samples_ns", "control_host_samples_ns"),
    *(*DEVICE_TIMES, *CONTROL_TIMES),
)
"""The arrays of a trial's record, each a row of the table `trial_samples`."""

CONDITIONS: Table = METADATA.tables["conditions"]
SERIES: Table = METADATA.tables["series"]
RUN: Table = METADATA.tables["run"]
TRIAL: Table = METADATA.tables["trial"]
# With the build: which builds a case was measured with is answered from the index alone.
Index(None, TRIAL.c.series_id, TRIAL.c.started_at, TRIAL.c.build_id)
Index(None, TRIAL.c.run_id, TRIAL.c.series_id)
Index(None, TRIAL.c.build_id, TRIAL.c.started_at)
Index(None, TRIAL.c.started_at)
Index(None, TRIAL.c.code_commit)
TRIAL_DETAIL: Table = METADATA.tables["trial_detail"]
TRIAL_SAMPLES: Table = METADATA.tables["trial_samples"]
LATEST: Table = METADATA.tables["latest"]
DATA_VERSION: Table = METADATA.tables["data_version"]

KEYS_OF_TRIALS: dict[Table, Any] = {
    SERIES: TRIAL.c.series_id,
    MACHINE: SERIES.c.machine_id,
    WORKLOAD: SERIES.c.workload_id,
    STRATEGY: SERIES.c.strategy_id,
    BUILD: TRIAL.c.build_id,
    RUN: TRIAL.c.run_id,
}
"""Every dimension, and what of a trial or of its series names its row."""
