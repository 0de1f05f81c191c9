"""SQLite: the file, and connections to it."""

from __future__ import annotations

import os
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from sqlalchemy import Engine, NullPool, QueuePool, create_engine, event

from compilewatch.db.engine.driver_errors import file_trouble
from compilewatch.db.errors import DatabaseError

Purpose = Literal["read", "write", "upgrade"]

_BUSY_TIMEOUT_S = 30.0
_COMPANIONS = ("", "-wal", "-shm", "-journal")
# A writer takes the write lock when its transaction begins. With SQLite's own default it would be taken at
# the first write, and what was read before that may by then have been changed by someone else.
_BEGIN: dict[Purpose, str] = {
    "read": "BEGIN DEFERRED",
    "write": "BEGIN IMMEDIATE",
    "upgrade": "BEGIN IMMEDIATE",
}


def create_file(path: Path) -> bool:
    """Create an empty file at `path`, for its owner alone: it holds ids and keys that open what they name.
    False where something is there already. SQLite's companions of it get its mode.

    Raises DatabaseError where the directory is missing or cannot be written.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return False
    except OSError as error:
        raise file_trouble(path, error, creating=True) from error
    return True


def remove_file(path: Path) -> None:
    """Remove a database file that `create_file` made, with its companions."""
    for suffix in _COMPANIONS:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def require_usable_file(path: Path, *, writable: bool) -> None:
    """Raise DatabaseError unless there is a file at `path` that can be read, and written where asked."""
    if path.is_dir():
        raise DatabaseError(f"{path} is a directory, not a database file.", "Name a file in it with --db.")
    try:
        path.stat()
    except OSError as error:
        raise file_trouble(path, error) from error
    if not os.access(path, os.R_OK):
        raise DatabaseError(f"The database file {path} cannot be read.", "Make it readable for this user.")
    # SQLite keeps its write-ahead log beside the file, so the directory must be writable too.
    if writable and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)):
        raise DatabaseError(
            f"The database file {path} cannot be written.",
            "Make the file and its directory writable, or name another file with --db.",
        )


def sqlite_engine(
    path: Path, purpose: Purpose, options: dict[str, Any], *, read_only: bool = False
) -> Engine:
    """An engine whose transactions begin as `purpose` asks; it never creates the file."""
    engine = create_engine(
        "sqlite://",
        creator=partial(_connect, _uri(path, read_only=read_only), _pragmas(purpose, read_only=read_only)),
        poolclass=NullPool if purpose == "upgrade" else QueuePool,
        **options,
    )
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(_BEGIN[purpose]))
    return engine


def _uri(path: Path, *, read_only: bool) -> str:
    """The file as SQLite's open call takes it.

    A read-only directory has no room for the shared-memory file: there, and only when no write-ahead log
    waits beside the file, it is opened as one that cannot change.
    """
    mode = "ro" if read_only else "rw"
    log = path.with_name(path.name + "-wal")
    frozen = read_only and not os.access(path.parent, os.W_OK) and not (log.exists() and log.stat().st_size)
    return f"file:{quote(os.fsencode(path))}?mode={mode}" + ("&immutable=1" if frozen else "")


def _pragmas(purpose: Purpose, *, read_only: bool) -> list[str]:
    """FULL makes a commit survive a power cut; a few commits a minute can afford it."""
    pragmas = ["synchronous=FULL", f"foreign_keys={'OFF' if purpose == 'upgrade' else 'ON'}"]
    if purpose == "read":
        pragmas.append("query_only=ON")
    elif not read_only:
        pragmas.insert(0, "journal_mode=WAL")
    return pragmas


def _connect(uri: str, pragmas: list[str]) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection
