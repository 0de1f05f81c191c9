"""Many rows into one table: the column types' own conversions, the driver's own way in.

SQLAlchemy's `execute(insert(table), rows)` builds a parameter dictionary per row, which for the 43 columns
of a trial costs more than the insertion. Here each value passes through its column type's processor and
rows go to `executemany` (SQLite) or `COPY` (PostgreSQL).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Column, Connection, Dialect, Enum, Table
from sqlalchemy.exc import DBAPIError

Row = Mapping[str, Any]


class _Plan(NamedTuple):
    """How rows of one table are sent: `processors` are (position, conversion) where a type has one."""

    target: str
    values_of: Callable[[Row], tuple[Any, ...]]
    processors: tuple[tuple[int, Callable[[Any], Any]], ...]
    width: int


def insert_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows that have every column of `table`; what the database refuses raises as usual."""
    if not rows:
        return
    plan = _plan(table, connection.dialect)
    if connection.dialect.name == "postgresql":
        _copy(connection, plan, rows)
        return
    marks = ", ".join("?" * plan.width)
    # The names are those of our own tables.
    statement = f"INSERT INTO {plan.target} VALUES ({marks})"  # noqa: S608
    connection.exec_driver_sql(statement, list(_values(plan, rows)))


@cache
def _plan(table: Table, dialect: Dialect) -> _Plan:
    columns = list(table.columns)
    names = ", ".join(dialect.identifier_preparer.format_column(column) for column in columns)
    processors = ((position, _processor(column, dialect)) for position, column in enumerate(columns))
    return _Plan(
        target=f"{dialect.identifier_preparer.format_table(table)} ({names})",
        values_of=itemgetter(*(column.name for column in columns)),
        processors=tuple((position, process) for position, process in processors if process is not None),
        width=len(columns),
    )


def _processor(column: Column[Any], dialect: Dialect) -> Callable[[Any], Any] | None:
    """What turns a value into the driver's. An enum has few values: each is converted once."""
    kind = column.type.dialect_impl(dialect)
    process = kind.bind_processor(dialect)
    return cache(process) if process is not None and isinstance(kind, Enum) else process


def _values(plan: _Plan, rows: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    """Column by column, which spares a list per row."""
    columns: list[Iterable[Any]] = list(zip(*map(plan.values_of, rows), strict=True))
    for position, process in plan.processors:
        columns[position] = map(process, columns[position])
    return zip(*columns, strict=True)


def _copy(connection: Connection, plan: _Plan, rows: Sequence[Row]) -> None:
    """`COPY ... FROM STDIN` inside the connection's transaction, on psycopg's own cursor."""
    statement = f"COPY {plan.target} FROM STDIN"
    driver = connection.dialect.loaded_dbapi
    cursor: Any = connection.connection.cursor()
    try:
        with cursor, cursor.copy(statement) as copy:
            for values in _values(plan, rows):
                copy.write_row(values)
    except driver.Error as error:
        # As `execute` raises it: callers know SQLAlchemy's errors, not psycopg's.
        raise DBAPIError.instance(statement, None, error, driver.Error, dialect=connection.dialect) from error
