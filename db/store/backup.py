"""A whole database as one file while others write to it, and back again.

A backup is a SQLite file of the same tables, whichever database it was made of: it can be opened, checked and
served like any other, and restored into either kind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select, update

from compilewatch.db.engine.session import Database, open_database, sqlite_file
from compilewatch.db.engine.sqlite import create_file, remove_file, require_usable_file, sentence
from compilewatch.db.engine.tables import DATA_VERSION, METADATA, REGRESSION, RUN_CASE
from compilewatch.db.errors import DatabaseError
from compilewatch.db.queries.history_points import workloads_of_runs
from compilewatch.db.store.trial_writer import bring_up, sum_up

_PART = ".compilewatch-part"


def back_up(url: str, file: Path) -> int:
    """Write everything in the database `url`, as of one moment, into the new `file`; its size in bytes.

    Writers are neither stopped nor seen half: what was committed before the backup began is in it, whole. The
    file appears under its name once it is complete, checked and on the disk.

    Raises DatabaseError where the database cannot be read or the file cannot be written or is there already.
    """
    _refuse_existing(file)
    with _part_of(file) as part:
        source = sqlite_file(url)
        if source is None:
            with open_database(url, read_only=True) as database:
                _copy_into_file(database, part)
        else:
            _copy_file(source, part)
        _require_sound(part)
        size = part.stat().st_size
        _put_in_place(part, file)
    return size


def restore(file: Path, url: str) -> int:
    """Put the backup `file` into the database `url`, which must not be there or hold no row; its trials.

    A backup of an older release is upgraded on the way; `file` itself is only read.
    Raises DatabaseError where that cannot be.
    """
    if not file.is_file():
        raise DatabaseError(f"There is no database at {file}.", "Check the path; nothing was restored.")
    require_usable_file(file, writable=False)
    target = sqlite_file(url)
    if target is not None:
        _refuse_existing(target)
        with _part_of(target) as part:
            _copy_file(file, part)
            trials = _upgraded(part)
            _put_in_place(part, target)
        return trials
    with tempfile.TemporaryDirectory(prefix="compilewatch-restore-") as directory:
        part = Path(directory) / "backup.db"
        _copy_file(file, part)
        trials = _upgraded(part)
        with (
            open_database(f"sqlite:///{part}", read_only=True) as source,
            open_database(url, migrate=True) as database,
        ):
            _copy_into_empty(source, database)
    return trials


def _refuse_existing(file: Path) -> None:
    if os.path.lexists(file):
        raise DatabaseError(f"There is a file {file} already.", "Name another, or move that one away.")


@contextmanager
def _part_of(file: Path) -> Iterator[Path]:
    """An empty file beside `file` to write to first; nothing stays there, nor of one that was killed."""
    part = file.with_name(f".{file.name}.{os.getpid()}{_PART}")
    if not part.parent.is_dir():
        raise DatabaseError(
            f"The directory {part.parent} does not exist.", f"Create it with `mkdir -p {part.parent}`."
        )
    try:
        for left in part.parent.glob(f".*{_PART}"):
            _remove_left(left)
        create_file(part)
        with part.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield part
    except sqlite3.Error as error:
        raise sentence(str(error), str(file)) from error
    except OSError as error:
        raise DatabaseError(
            f"{file} could not be written: {error.strerror or error}.",
            "Name a file in a directory that exists and can be written.",
        ) from error
    finally:
        remove_file(part)


def _remove_left(part: Path) -> None:
    """Remove what a killed backup or restore has left: one that goes on holds the lock of its file."""
    with contextlib.suppress(OSError), open(part, "rb", opener=_without_links) as left:
        fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_file(part)


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _copy_file(source: Path, part: Path) -> None:
    """SQLite's online backup in one step: a reader's snapshot, which no writer waits for."""
    require_usable_file(source, writable=False)
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=30)) as reading,
        closing(sqlite3.connect(part)) as writing,
    ):
        try:
            reading.execute("PRAGMA schema_version").fetchone()
        except sqlite3.Error as error:
            raise sentence(str(error), str(source)) from error
        reading.backup(writing)
        # One file that is whole by itself, without a log beside it.
        writing.execute("PRAGMA journal_mode=DELETE")


def _copy_into_file(database: Database, part: Path) -> None:
    with open_database(f"sqlite:///{part}", migrate=True) as target:
        _copy_into_empty(database, target)
    with closing(sqlite3.connect(part)) as writing:
        writing.execute("PRAGMA journal_mode=DELETE")


def _upgraded(part: Path) -> int:
    """Bring a copied backup to this release's schema; how many trials it holds."""
    with open_database(f"sqlite:///{part}", migrate=True) as database:
        bring_up(database)
        (trials,) = database.scalars(select(func.count()).select_from(METADATA.tables["trial"]))
    with closing(sqlite3.connect(part)) as writing:
        writing.execute("PRAGMA journal_mode=DELETE")
    return int(trials)


def _require_sound(part: Path) -> None:
    with closing(sqlite3.connect(part)) as reading:
        problems = [str(row[0]) for row in reading.execute("PRAGMA integrity_check(1)")]
    if problems != ["ok"]:
        raise DatabaseError(
            f"The database is damaged ({problems[0]}), and so would be its backup.",
            "Keep an older backup; `compilewatch db check` names the damage.",
        )


def _put_in_place(part: Path, file: Path) -> None:
    """Give the complete file its name, and do not return before both are on the disk."""
    _sync(part)
    part.rename(file)
    _sync(file.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_BATCH = 500
# What runs come to follows from their trials, and another release may have made it.
_COPIED = [table for table in METADATA.sorted_tables if table not in (DATA_VERSION, RUN_CASE)]


@dataclass(frozen=True)
class _Copied:
    """Where a history is now, as it may be shown, and how many rows of each table."""

    target: str
    rows: dict[str, int]


def copy_database(source_url: str, target_url: str) -> _Copied:
    """Copy every row of every table into a database that is not there yet, or empty.

    The source is read as of one moment while others go on writing to it; the target is written in one
    transaction. Raises DatabaseError where either cannot be opened or the target holds data; a target that
    was made for the copy is then gone again.
    """
    with open_database(source_url, read_only=True) as source, _target(target_url) as target:
        return _Copied(target.url, _copy_into_empty(source, target))


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


def _copy_into_empty(source: Database, target: Database) -> dict[str, int]:
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
