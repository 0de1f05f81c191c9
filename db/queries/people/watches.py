"""Watches: who is told of which regressions."""

from __future__ import annotations

from sqlalchemy import Connection, select

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.selection import read_records
from compilewatch.db.records.people.watches import Watch
from compilewatch.db.tables.trials import WATCH

_ORDERED = select(WATCH).order_by(WATCH.c.made_at, WATCH.c.watch_id)


def watches(db: Database) -> list[Watch]:
    """All of them, the oldest first."""
    return read_records(db, Watch, _ORDERED)


def watches_in(connection: Connection) -> list[Watch]:
    """The same within a transaction."""
    return [Watch.model_validate(row) for row in connection.execute(_ORDERED).mappings()]
