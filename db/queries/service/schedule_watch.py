"""What watches the watcher: results that are due, and how hosts are."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, select

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.selection import read_records
from compilewatch.db.records.service.hosts import HostHealth
from compilewatch.db.records.service.schedules import ScheduleWatch
from compilewatch.db.records.trial import FailureKind
from compilewatch.db.tables.trials import FIRING, HOST_HEALTH, RUN_REQUEST, SCHEDULE, SCHEDULE_WATCH, TRIAL

_RECENT_REQUESTS = 20


def schedule_watches(db: Database) -> dict[str, ScheduleWatch]:
    """What is awaited of each schedule, by its name; those that never were watched are left out."""
    statement = select(SCHEDULE_WATCH).order_by(SCHEDULE_WATCH.c.schedule)
    return {each.schedule: each for each in read_records(db, ScheduleWatch, statement)}


def silent_schedules(db: Database, now: datetime) -> list[ScheduleWatch]:
    """Schedules that are not paused and have produced nothing for a whole period, by name."""
    statement = (
        select(SCHEDULE_WATCH)
        .join(SCHEDULE, SCHEDULE.c.name == SCHEDULE_WATCH.c.schedule)
        .where(SCHEDULE_WATCH.c.due_at <= now, SCHEDULE.c.paused.is_(False))
        .order_by(SCHEDULE_WATCH.c.schedule)
    )
    return read_records(db, ScheduleWatch, statement)


def last_result_of(db: Database, schedule: str) -> datetime | None:
    """When the newest trial ended that a firing of `schedule` led to; cancelled ones are no result."""
    recent = (
        select(RUN_REQUEST.c.run_ids)
        .join(FIRING, FIRING.c.request_id == RUN_REQUEST.c.request_id)
        .where(FIRING.c.schedule == schedule)
        .order_by(FIRING.c.fire_at.desc())
        .limit(_RECENT_REQUESTS)
    )
    with db.read() as connection:
        run_ids = [run_id for (each,) in connection.execute(recent) for run_id in each]
        if not run_ids:
            return None
        newest: datetime | None = connection.scalar(
            select(func.max(func.coalesce(TRIAL.c.ended_at, TRIAL.c.started_at))).where(
                TRIAL.c.run_id.in_(run_ids), TRIAL.c.failure_kind.is_distinct_from(FailureKind.CANCELLED)
            )
        )
        return newest


def host_healths(db: Database) -> list[HostHealth]:
    """Every host whose service or worker ever spoke, by name."""
    return read_records(db, HostHealth, select(HOST_HEALTH).order_by(HOST_HEALTH.c.host))
