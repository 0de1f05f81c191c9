"""Many rows into one table: the column types' own conversions, the driver's own way in.

SQLAlchemy's `execute(insert(table), rows)` builds a parameter dictionary per row, which for the 43 columns
of a trial costs more than the insertion. Here each column passes through its type's processor and rows go to
`executemany` (SQLite) or `COPY` (PostgreSQL).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from operator import itemgetter
from typing import Any, NamedTuple

from pydantic_core import to_json
from sqlalchemy import JSON, Column, Connection, DateTime, Dialect, Enum, LargeBinary, Table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeDecorator

from db.tables.metadata import JsonText

Row = Mapping[str, Any]
# Which columns hold nothing differs from file to file.
_PLANS = 200
_WHOLE_SECOND = len('"2026-11-20T18:00:00Z"')


# From a column's values to the driver's.
_Conversion = Callable[[Sequence[Any]], Iterable[Any]]


class _Plan(NamedTuple):
    """How rows of one table are sent: `conversions` are (position, conversion) where a type has one."""

    target: str
    conversions: tuple[tuple[int, _Conversion], ...]
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
    filled = {name: values for name, values in columns.items() if not _left_out(table.columns[name], values)}
    plan = _plan(table, connection.dialect, tuple(filled), tuple(as_stored))
    values = list(filled.values())
    converted: list[Iterable[Any]] = [*values]
    for position, convert in plan.conversions:
        converted[position] = convert(values[position])
    rows = zip(*converted, strict=True)
    if connection.dialect.name == "postgresql":
        _copy(connection, plan, rows)
        return
    marks = ", ".join("?" * plan.width)
    # The names are those of our own tables.
    statement = f"INSERT INTO {plan.target} VALUES ({marks})"  # noqa: S608
    if listed := list(rows):
        connection.exec_driver_sql(statement, listed)


def _left_out(column: Column[Any], values: Sequence[Any]) -> bool:
    """Whether `column` is null in every row, which is its default as well: unnamed it costs nothing, while
    SQLite's driver takes longer over a null than over a number.
    """
    return bool(values and column.nullable) and values[0] is None and values.count(None) == len(values)


@lru_cache(_PLANS)
def _plan(table: Table, dialect: Dialect, names: tuple[str, ...], as_stored: tuple[str, ...]) -> _Plan:
    columns = [table.columns[name] for name in names]
    quoted = ", ".join(dialect.identifier_preparer.format_column(column) for column in columns)
    conversions = (
        (position, _conversion(column, dialect))
        for position, column in enumerate(columns)
        if column.name not in as_stored
    )
    return _Plan(
        target=f"{dialect.identifier_preparer.format_table(table)} ({quoted})",
        conversions=tuple((position, convert) for position, convert in conversions if convert is not None),
        width=len(columns),
    )


def _conversion(column: Column[Any], dialect: Dialect) -> _Conversion | None:
    """What turns a column's values into the driver's. An enum has few values: each is converted once."""
    kind = column.type.dialect_impl(dialect)
    process = kind.bind_processor(dialect)
    if dialect.name == "sqlite":
        if isinstance(kind, TypeDecorator) and isinstance(kind.impl, DateTime):
            return _sqlite_moments
        if isinstance(kind, LargeBinary):
            # Bytes need no wrapper; but for each of them, and for no bytearray, the driver seeks an adapter.
            return None if column.nullable else partial(map, bytearray)
    if process is None or not isinstance(kind, Enum | JSON):
        return None if process is None else partial(map, process)
    if isinstance(kind, Enum):
        return partial(map, cache(process))
    null = process(None)
    return partial(
        map, lambda value: null if value is None else value if type(value) is JsonText else process(value)
    )


def _sqlite_moments(values: Sequence[datetime | None]) -> Iterator[str | None]:
    """Aware moments in SQLAlchemy's own storage format for SQLite, in a tenth of its time.

    Written as JSON by one call: "2026-11-20T18:00:00Z" or, between seconds, "2026-11-20T18:00:00.000001Z".
    """
    if not values:
        return
    if any(value is not None and value.tzinfo is None for value in values):
        raise ValueError("a moment must carry a time zone")
    in_utc = [value if value is None or value.tzinfo is UTC else value.astimezone(UTC) for value in values]
    for text in to_json(in_utc).decode()[1:-1].split(","):
        if text.startswith('"'):
            yield f"{text[1:11]} {text[12:-2] if len(text) > _WHOLE_SECOND else text[12:20] + '.000000'}"
        else:
            yield None


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
