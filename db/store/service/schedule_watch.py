"""Writes about the watcher: when results are due, that people were told, how hosts are."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import or_, update

from compilewatch.db.engine.session import Database
from compilewatch.db.records.service.hosts import HostHealth
from compilewatch.db.store.writing import upsert
from compilewatch.db.tables.trials import HOST_HEALTH, SCHEDULE_WATCH


def save_due(
    db: Database, schedule: str, *, last_result_at: datetime | None, due_at: datetime | None
) -> None:
    """Say by when a schedule must have produced something; None where nothing is awaited, as when paused."""
    content = {"last_result_at": last_result_at, "due_at": due_at}
    with db.write() as connection:
        statement = upsert(connection, SCHEDULE_WATCH).values(schedule=schedule, told_due_at=None, **content)
        connection.execute(statement.on_conflict_do_update(index_elements=["schedule"], set_=content))


def claim_silence(db: Database, schedule: str, due_at: datetime) -> bool:
    """Whether the caller is to tell people that nothing came by `due_at`: true once, for one caller."""
    watch = SCHEDULE_WATCH
    with db.write() as connection:
        claimed = connection.execute(
            update(watch)
            .where(
                watch.c.schedule == schedule,
                watch.c.due_at == due_at,
                or_(watch.c.told_due_at.is_(None), watch.c.told_due_at != due_at),
            )
            .values(told_due_at=due_at)
        )
        return claimed.rowcount == 1


def save_health(db: Database, health: HostHealth) -> None:
    """Put down how a host is now, in the place of how it was."""
    content = health.model_dump()
    with db.write() as connection:
        statement = upsert(connection, HOST_HEALTH).values(**content)
        connection.execute(statement.on_conflict_do_update(index_elements=["host"], set_=content))
