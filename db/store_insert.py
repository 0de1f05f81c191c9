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

from sqlalchemy import JSON, Column, Connection, Dialect, Enum, Table
from sqlalchemy.exc import DBAPIError

from db.table_parts import JsonText

Row = Mapping[str, Any]


class _Plan(NamedTuple):
    """How rows of one table are sent: `processors` are (position, conversion) where a type has one."""

    target: str
    processors: tuple[tuple[int, Callable[[Any], Any]], ...]
    width: int


def insert_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows that have every column of `table`; what the database refuses raises as usual."""
    names = tuple(column.name for column in table.columns)
    insert_values(connection, table, names, [*map(itemgetter(*names), rows)])


def insert_values(
    connection: Connection, table: Table, names: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> None:
    """As `insert_rows`, for rows that are the values of the columns `names`, in that order."""
    if not rows:
        return
    plan = _plan(table, connection.dialect, names)
    if connection.dialect.name == "postgresql":
        _copy(connection, plan, rows)
        return
    marks = ", ".join("?" * plan.width)
    # The names are those of our own tables.
    statement = f"INSERT INTO {plan.target} VALUES ({marks})"  # noqa: S608
    connection.exec_driver_sql(statement, list(_converted(plan, rows)))


@cache
def _plan(table: Table, dialect: Dialect, names: tuple[str, ...]) -> _Plan:
    columns = [table.columns[name] for name in names]
    quoted = ", ".join(dialect.identifier_preparer.format_column(column) for column in columns)
    processors = ((position, _processor(column, dialect)) for position, column in enumerate(columns))
    return _Plan(
        target=f"{dialect.identifier_preparer.format_table(table)} ({quoted})",
        processors=tuple((position, process) for position, process in processors if process is not None),
        width=len(columns),
    )


def _processor(column: Column[Any], dialect: Dialect) -> Callable[[Any], Any] | None:
    """What turns a value into the driver's. An enum has few values: each is converted once."""
    kind = column.type.dialect_impl(dialect)
    process = kind.bind_processor(dialect)
    if process is None or not isinstance(kind, Enum | JSON):
        return process
    if isinstance(kind, Enum):
        return cache(process)
    null = process(None)
    return lambda value: null if value is None else value if type(value) is JsonText else process(value)


def _converted(plan: _Plan, rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """As the driver takes them; column by column, which spares a list per row."""
    columns: list[Iterable[Any]] = list(zip(*rows, strict=True))
    for position, process in plan.processors:
        columns[position] = map(process, columns[position])
    return zip(*columns, strict=True)


def _copy(connection: Connection, plan: _Plan, rows: Sequence[tuple[Any, ...]]) -> None:
    """`COPY ... FROM STDIN` inside the connection's transaction, on psycopg's own cursor."""
    statement = f"COPY {plan.target} FROM STDIN"
    driver = connection.dialect.loaded_dbapi
    cursor: Any = connection.connection.cursor()
    try:
        with cursor, cursor.copy(statement) as copy:
            for values in _converted(plan, rows):
                copy.write_row(values)
    except driver.Error as error:
        # As `execute` raises it: callers know SQLAlchemy's errors, not psycopg's.
        raise DBAPIError.instance(statement, None, error, driver.Error, dialect=connection.dialect) from error
