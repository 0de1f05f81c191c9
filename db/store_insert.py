"""Many rows into one table: the column types' own conversions, the driver's own way in.

SQLAlchemy's `execute(insert(table), rows)` builds a parameter dictionary per row, which for the 43 columns
of a trial costs more than the insertion. Here each column passes through its type's processor and rows go to
`executemany` (SQLite) or `COPY` (PostgreSQL).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import JSON, Column, Connection, DateTime, Dialect, Enum, Table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeDecorator

from db.table_parts import JsonText

Row = Mapping[str, Any]


class _Plan(NamedTuple):
    """How rows of one table are sent: `processors` are (position, conversion) where a type has one."""

    target: str
    processors: tuple[tuple[int, Callable[[Any], Any]], ...]
    width: int


def insert_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows that have every column of `table`; what the database refuses raises as usual."""
    if rows:
        names = tuple(column.name for column in table.columns)
        columns = zip(*map(itemgetter(*names), rows), strict=True)
        insert_columns(connection, table, dict(zip(names, columns, strict=True)))


def insert_columns(
    connection: Connection,
    table: Table,
    columns: Mapping[str, Sequence[Any]],
    *,
    as_stored: Sequence[str] = (),
) -> None:
    """As `insert_rows`, for values by column; those of columns in `as_stored` are sent as they are."""
    names = tuple(columns)
    plan = _plan(table, connection.dialect, names, tuple(as_stored))
    converted: list[Iterable[Any]] = list(columns.values())
    for position, process in plan.processors:
        converted[position] = map(process, converted[position])
    rows = zip(*converted, strict=True)
    if connection.dialect.name == "postgresql":
        _copy(connection, plan, rows)
        return
    marks = ", ".join("?" * plan.width)
    # The names are those of our own tables.
    statement = f"INSERT INTO {plan.target} VALUES ({marks})"  # noqa: S608
    if found := list(rows):
        connection.exec_driver_sql(statement, found)


@cache
def _plan(table: Table, dialect: Dialect, names: tuple[str, ...], as_stored: tuple[str, ...]) -> _Plan:
    columns = [table.columns[name] for name in names]
    quoted = ", ".join(dialect.identifier_preparer.format_column(column) for column in columns)
    processors = (
        (position, _processor(column, dialect))
        for position, column in enumerate(columns)
        if column.name not in as_stored
    )
    return _Plan(
        target=f"{dialect.identifier_preparer.format_table(table)} ({quoted})",
        processors=tuple((position, process) for position, process in processors if process is not None),
        width=len(columns),
    )


def _processor(column: Column[Any], dialect: Dialect) -> Callable[[Any], Any] | None:
    """What turns a value into the driver's. An enum has few values: each is converted once."""
    kind = column.type.dialect_impl(dialect)
    process = kind.bind_processor(dialect)
    if isinstance(kind, TypeDecorator) and isinstance(kind.impl, DateTime) and dialect.name == "sqlite":
        return _sqlite_moment
    if process is None or not isinstance(kind, Enum | JSON):
        return process
    if isinstance(kind, Enum):
        return cache(process)
    null = process(None)
    return lambda value: null if value is None else value if type(value) is JsonText else process(value)


def _sqlite_moment(value: datetime | None) -> str | None:
    """An aware moment in SQLAlchemy's own storage format for SQLite, in a fifth of its time."""
    if value is None:
        return None
    if value.tzinfo is None:
        raise ValueError("a moment must carry a time zone")
    in_utc = value if value.tzinfo is UTC else value.astimezone(UTC)
    return in_utc.isoformat(sep=" ", timespec="microseconds")[:26]


def _copy(connection: Connection, plan: _Plan, rows: Iterable[tuple[Any, ...]]) -> None:
    """`COPY ... FROM STDIN` inside the connection's transaction, on psycopg's own cursor."""
    statement = f"COPY {plan.target} FROM STDIN"
    driver = connection.dialect.loaded_dbapi
    cursor: Any = connection.connection.cursor()
    try:
        with cursor, cursor.copy(statement) as copy:
            for values in rows:
                copy.write_row(values)
    except driver.Error as error:
        # As `execute` raises it: callers know SQLAlchemy's errors, not psycopg's.
        raise DBAPIError.instance(statement, None, error, driver.Error, dialect=connection.dialect) from error
