"""A whole history from one database into another: SQLite to PostgreSQL when a team forms, and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select, update

from compilewatch.db.engine.session import Database, open_database, sqlite_file
from compilewatch.db.engine.sqlite import remove_file
from compilewatch.db.errors import DatabaseError
from compilewatch.db.queries.cases.run_cases import workloads_of_runs
from compilewatch.db.store.run_cases import sum_up
from compilewatch.db.tables.trials import DATA_VERSION, METADATA, REGRESSION, RUN_CASE

_BATCH = 500
# What runs come to follows from their trials, and another release may have made it.
_COPIED = [table for table in METADATA.sorted_tables if table not in (DATA_VERSION, RUN_CASE)]


@dataclass(frozen=True)
class Copied:
    """Where a history is now, as it may be shown, and how many rows of each table."""

    target: str
    rows: dict[str, int]


def copy_database(source_url: str, target_url: str) -> Copied:
    """Copy every row of every table into a database that is not there yet, or empty.

    The source is read as of one moment while others go on writing to it; the target is written in one
    transaction. Raises DatabaseError where either cannot be opened or the target holds data; a target that
    was made for the copy is then gone again.
    """
    with open_database(source_url, read_only=True) as source, _target(target_url) as target:
        return Copied(target.url, copy_into_empty(source, target))


@contextmanager
def _target(url: str) -> Iterator[Database]:
    file = sqlite_file(url)
    is_new = file is not None and not file.exists()
    try:
        with open_database(url, migrate=True) as database:
            yield database
    except BaseException:
        if file is not None and is_new:
            remove_file(file)
        raise


def copy_into_empty(source: Database, target: Database) -> dict[str, int]:
    """Every row, read in one snapshot and written in one transaction: table -> its rows.

    Raises DatabaseError where the target holds data.
    """
    copied: dict[str, int] = {}
    with source.read() as reading, target.write() as writing:
        _require_empty(writing, target.url)
        version = reading.scalar(select(DATA_VERSION.c.version))
        writing.execute(update(DATA_VERSION).values(version=version))
        for table in _COPIED:
            for rows in _batches(reading, table):
                writing.execute(insert(table), rows)
        sum_up(writing, workloads_of_runs(writing))
        for table in (*_COPIED, RUN_CASE):
            copied[table.name] = writing.scalar(select(func.count()).select_from(table)) or 0
    return copied


def _require_empty(connection: Connection, shown_url: str) -> None:
    if any(connection.execute(select(table).limit(1)).first() is not None for table in _COPIED):
        raise DatabaseError(
            f"The database {shown_url} holds data already; nothing was changed.", "Name an empty one."
        )


def _batches(connection: Connection, table: Table) -> Iterator[list[dict[str, Any]]]:
    """The rows of `table`, those that others refer to first, in constant memory."""
    order = [table.c.revision] if table is REGRESSION else list(table.primary_key.columns)
    streamed = connection.execution_options(yield_per=_BATCH).execute(select(table).order_by(*order))
    rows = (dict(row) for row in streamed.mappings())
    while batch := list(islice(rows, _BATCH)):
        yield batch
