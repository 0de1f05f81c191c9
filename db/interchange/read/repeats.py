"""Equal results of one file, which are repeats and not one result: told apart by how many came before."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager

from compilewatch.db.errors import CompilewatchError
from compilewatch.db.records.ids import identity
from compilewatch.db.records.trial import Trial

# Beyond this SQLite keeps what it counts in a temporary file, so that memory does not grow with the file.
_CACHE_KIB = 65_536
_COUNT = (
    "INSERT INTO seen (trial_id, times) VALUES (?, 1) "
    "ON CONFLICT (trial_id) DO UPDATE SET times = times + 1 RETURNING times"
)


def with_distinct_ids(trials: Iterable[Trial]) -> Iterator[Trial]:
    """The trials of one file, or of one job, whose ids follow from content, each with an id of its own.

    The first of equal ones keeps its id; that of a later one says how many came before it, so that the same
    file gives the same ids again.
    """
    table = "CREATE TABLE seen (trial_id TEXT PRIMARY KEY, times INTEGER) WITHOUT ROWID"
    with counting(), closing(temporary_table(table)) as connection:
        for trial in trials:
            ((times,),) = connection.execute(_COUNT, (trial.trial_id,)).fetchall()
            yield trial if times == 1 else _repeat(trial, times - 1)


def temporary_table(statement: str) -> sqlite3.Connection:
    """A table that `statement` creates, on the disk where memory does not suffice. Who asks closes it."""
    connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute(statement)
    connection.execute("BEGIN")
    return connection


@contextmanager
def counting() -> Iterator[None]:
    """Raises CompilewatchError where a table that counts has no room."""
    try:
        yield
    except sqlite3.Error as error:
        raise CompilewatchError(
            f"The results of the file cannot be counted ({error}).",
            "Make room in the folder of temporary files.",
        ) from error


def _repeat(trial: Trial, before: int) -> Trial:
    content = {"trial": trial.trial_id, "equal_ones_before": before}
    trial_id = "imp-" + identity(content) + identity({"again": content})
    return trial.model_copy(update={"trial_id": trial_id})
