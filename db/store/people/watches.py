"""Writes about watches. No page draws a figure of them, so the version of the data stays."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, insert, update

from compilewatch.db.engine.session import Database
from compilewatch.db.records.people.watches import Watch
from compilewatch.db.tables.trials import NOTIFICATION, WATCH


def save_watch(db: Database, watch: Watch) -> None:
    """Store a new one."""
    with db.write() as connection:
        connection.execute(insert(WATCH).values(**watch.model_dump()))


def remove_watch(db: Database, key: str) -> bool:
    """End it, with what waits for it: False where it is gone already."""
    with db.write() as connection:
        ended = connection.execute(delete(WATCH).where(WATCH.c.key == key).returning(WATCH.c.watch_id)).all()
        for (watch_id,) in ended:
            connection.execute(delete(NOTIFICATION).where(NOTIFICATION.c.channel == f"#{watch_id}"))
    return bool(ended)


def note_told(db: Database, watch_id: str, at: datetime) -> None:
    """That its last message went out."""
    with db.write() as connection:
        connection.execute(update(WATCH).where(WATCH.c.watch_id == watch_id).values(told_at=at))
