"""The tables of the service: schedules, their firings, and the queue of what to measure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index, Table
from sqlmodel import Field

from db.records.requests import RequestKind, RequestState
from db.records.schedules import FiringOutcome
from db.tables.metadata import METADATA, Row, by_value


class ScheduleRow(Row, table=True):
    """What is measured when; `spec` is that of `db.records.schedules`, `upcoming` are its next firings."""

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
    """The queue of what to measure, and its past; `spec` and `history` are those of `db.records.requests`."""

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


# The table of measuring hosts: that their service lives, and what their disk and devices are like.


class HostRow(Row, table=True):
    """What the service of a host last said of it; `devices` are those of `db.records.schedules`."""

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


# The tables of who watches the watcher: when a schedule's next result is due, and how hosts are.


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


# The tables of a fleet: its workers, and the commands that were run to have more of them.


class FleetWorkerRow(Row, table=True):
    """What a worker last wrote of itself."""

    owner: str = Field(primary_key=True)
    queue: str
    host: str
    served: str
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    measured: int = Field(sa_type=BigInteger)


class FleetLaunchRow(Row, table=True):
    """One run of a `[fleet.launch]` command; `worker` is the one that came of it."""

    launch_id: str = Field(primary_key=True)
    queue: str = Field(index=True)
    host: str
    launched_at: datetime
    worker_due_at: datetime
    ended_at: datetime | None
    exit_code: int | None
    output: str
    worker: str | None
    worker_at: datetime | None


FLEET_WORKER: Table = METADATA.tables["fleet_worker"]
FLEET_LAUNCH: Table = METADATA.tables["fleet_launch"]
