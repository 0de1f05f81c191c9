"""The tables of a fleet: its workers, and the commands that were run to have more of them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Table
from sqlmodel import Field

from db.tables.metadata import METADATA, Row


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
