"""Reads of what watches the watcher."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, select

from db.records import FailureKind
from db.requests import UNFINISHED, RequestState
from db.session import Database
from db.table_watch import HOST_HEALTH, SCHEDULE_WATCH
from db.tables import FIRING, RUN_REQUEST, SCHEDULE, TRIAL
from db.watch import HostHealth, ScheduleWatch

_REQUESTS_LOOKED_AT = 20


def schedule_watches(db: Database) -> dict[str, ScheduleWatch]:
    """What is awaited of each schedule, by its name; those that never were watched are left out."""
    with db.read() as connection:
        rows = connection.execute(select(SCHEDULE_WATCH).order_by(SCHEDULE_WATCH.c.schedule)).mappings()
        return {row["schedule"]: ScheduleWatch.model_validate(dict(row)) for row in rows}


def silent_schedules(db: Database, now: datetime) -> list[ScheduleWatch]:
    """Schedules that are not paused and have produced nothing for a whole period, by name."""
    statement = (
        select(SCHEDULE_WATCH)
        .join(SCHEDULE, SCHEDULE.c.name == SCHEDULE_WATCH.c.schedule)
        .where(SCHEDULE_WATCH.c.due_at <= now, SCHEDULE.c.paused.is_(False))
        .order_by(SCHEDULE_WATCH.c.schedule)
    )
    with db.read() as connection:
        return [ScheduleWatch.model_validate(dict(row)) for row in connection.execute(statement).mappings()]


def last_result_of(db: Database, schedule: str) -> datetime | None:
    """When the newest trial ended that a firing of `schedule` led to; cancelled ones are no result."""
    asked = (
        select(RUN_REQUEST.c.run_ids)
        .join(FIRING, FIRING.c.request_id == RUN_REQUEST.c.request_id)
        .where(FIRING.c.schedule == schedule)
        .order_by(FIRING.c.fire_at.desc())
        .limit(_REQUESTS_LOOKED_AT)
    )
    with db.read() as connection:
        run_ids = [run_id for (each,) in connection.execute(asked) for run_id in each]
        if not run_ids:
            return None
        newest: datetime | None = connection.scalar(
            select(func.max(func.coalesce(TRIAL.c.ended_at, TRIAL.c.started_at))).where(
                TRIAL.c.run_id.in_(run_ids),
                TRIAL.c.failure_kind.is_distinct_from(FailureKind.CANCELLED),
            )
        )
        return newest


def host_healths(db: Database) -> list[HostHealth]:
    """Every host whose service or worker ever spoke, by name."""
    with db.read() as connection:
        rows = connection.execute(select(HOST_HEALTH).order_by(HOST_HEALTH.c.host)).mappings()
        return [HostHealth.model_validate(dict(row)) for row in rows]


def requests_by_state(db: Database) -> dict[RequestState, int]:
    """How many requests wait and run; both are there, with 0 where there are none."""
    statement = (
        select(RUN_REQUEST.c.state, func.count().label("waiting"))
        .where(RUN_REQUEST.c.state.in_(UNFINISHED))
        .group_by(RUN_REQUEST.c.state)
    )
    with db.read() as connection:
        found = {row.state: row.waiting for row in connection.execute(statement)}
    return {state: found.get(state, 0) for state in UNFINISHED}
