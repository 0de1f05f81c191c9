"""What all records with a table of their own share: to add, put, get, list and remove one.

What every write shares: one writer at a time, the version of the data, and inserts that may meet a row.

When a trial may have been measured: neither after now, nor before torch, nor ended before it began.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from pydantic import BaseModel
from sqlalchemy import JSON, Column, ColumnElement, Connection, Table, delete, insert, select, text, update
from sqlalchemy.dialects import postgresql, sqlite

from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import DATA_VERSION


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


Stored = TypeVar("Stored", bound=BaseModel)


@dataclass(frozen=True)
class Repository(Generic[Stored]):
    """The records of a table whose key is one column; each call is a transaction of its own."""

    record: type[Stored]
    table: Table
    order: tuple[ColumnElement[Any], ...] = ()
    """How they are listed; without it by their key."""
    is_data: bool = False
    """Whether pages show them among the figures, so that each write makes the version of the data grow."""

    def all(self, db: Database, *conditions: ColumnElement[bool]) -> list[Stored]:
        """Those that meet all conditions, in order."""
        statement = select(self.table).where(*conditions).order_by(*(self.order or (self._key,)))
        return [self.record.model_validate(dict(row._mapping)) for row in db.rows(statement)]

    def get(self, db: Database, key: str) -> Stored | None:
        """The one with this key; None where there is none."""
        if "\x00" in key:  # PostgreSQL refuses to look for it
            return None
        return next(iter(self.all(db, self._key == key)), None)

    def add(self, db: Database, record: Stored) -> None:
        """Store a new one."""
        with db.write() as connection:
            if self.is_data:
                lock_data_version(connection)
            connection.execute(insert(self.table).values(**self._row(record)))
            if self.is_data:
                bump_data_version(connection)

    def put(self, db: Database, record: Stored, *, leave: Collection[str] = ()) -> None:
        """Store it in the place of an earlier one with its key, but for the fields to `leave` as they are."""
        row = self._row(record)
        values = {name: value for name, value in row.items() if name not in leave}
        with db.write() as connection:
            if self.is_data:
                lock_data_version(connection)
            statement = upsert(connection, self.table).values(**row)
            connection.execute(statement.on_conflict_do_update(index_elements=[self._key.name], set_=values))
            if self.is_data:
                bump_data_version(connection)

    def remove(self, db: Database, key: str) -> bool:
        """Take the one with this key away: False where it is gone already."""
        with db.write() as connection:
            if self.is_data:
                lock_data_version(connection)
            statement = delete(self.table).where(self._key == key).returning(self._key)
            is_removed = bool(connection.execute(statement).all())
            if self.is_data and is_removed:
                bump_data_version(connection)
        return is_removed

    @property
    def _key(self) -> Column[Any]:
        (key,) = self.table.primary_key
        return key

    def _row(self, record: Stored) -> dict[str, Any]:
        """As the driver takes it: parts as JSON, all else as it is."""
        in_json = {name for name in type(record).model_fields if isinstance(self.table.c[name].type, JSON)}
        return record.model_dump(exclude=in_json) | record.model_dump(mode="json", include=in_json)


CLOCK_SKEW = timedelta(minutes=10)
"""How far the clock of a host that measures may be ahead of the database's."""
EARLIEST = datetime(2016, 1, 1, tzinfo=UTC)
"""The year of torch's first release."""


def latest_moment(connection: Connection) -> datetime:
    """Later than this nothing can have been measured: the server's clock on PostgreSQL, else this host's."""
    if connection.dialect.name == "postgresql":
        now: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
    else:
        now = datetime.now(UTC)
    return now + CLOCK_SKEW


def wrong_moment(started_at: datetime, ended_at: datetime | None, latest: datetime) -> str | None:
    """What is wrong with the moments of a trial, as the end of a sentence that begins with the trial."""
    if ended_at is not None and ended_at < started_at:
        return f"ends at {ended_at.isoformat()}, before it begins at {started_at.isoformat()}"
    if started_at < EARLIEST:
        return f"begins at {started_at.isoformat()}, before there was torch"
    if max(started_at, ended_at or started_at) > latest:
        return f"is of {(ended_at or started_at).isoformat()}, which is not yet"
    return None
