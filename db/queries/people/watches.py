"""Watches: who is told of which regressions."""

from __future__ import annotations

from sqlalchemy import Connection, select

from db.engine.session import Database
from db.queries.selection import read_records
from db.records.people.watches import Watch
from db.tables.trials import WATCH

_ORDERED = select(WATCH).order_by(WATCH.c.made_at, WATCH.c.watch_id)


def watches(db: Database) -> list[Watch]:
    """All of them, the oldest first."""
    return read_records(db, Watch, _ORDERED)


def watches_in(connection: Connection) -> list[Watch]:
    """The same within a transaction."""
    return [Watch.model_validate(row) for row in connection.execute(_ORDERED).mappings()]
