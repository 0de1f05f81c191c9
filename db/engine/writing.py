"""What every write shares: one writer at a time, the version of the data, and inserts that may meet a row."""

from __future__ import annotations

from sqlalchemy import Connection, Table, select, update
from sqlalchemy.dialects import postgresql, sqlite

from compilewatch.db.tables.trials import DATA_VERSION


def lock_data_version(connection: Connection) -> None:
    """Make concurrent writers wait for each other.

    SQLite's write lock is held already; on PostgreSQL this row is the lock, so that what a writer found to be
    missing is still missing when it inserts it.
    """
    connection.execute(select(DATA_VERSION.c.version).with_for_update())


def bump_data_version(connection: Connection) -> None:
    """Say that something changed: whoever cached what was read before reads it anew."""
    connection.execute(update(DATA_VERSION).values(version=DATA_VERSION.c.version + 1))


def upsert(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """An insert that can say what to do on a conflict."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)
