"""SQLite: the file, and connections to it.

From what a driver or the operating system says to a sentence and the next step.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from sqlalchemy import Engine, NullPool, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from compilewatch.db.errors import DatabaseError

# What the message of SQLite or of libpq contains: what happened to {url}, and what to do.
_MESSAGES: tuple[tuple[str, str, str], ...] = (
    (
        "is locked",
        "The database {url} is locked by another program.",
        "Try again when that program has ended.",
    ),
    ("disk is full", "The disk that holds the database {url} is full.", "Free some space and try again."),
    ("No space left on device", "The disk of the database {url} is full.", "Free some space and try again."),
    ("file is not a database", "{url} is not a database file.", "Name another file with --db."),
    (
        "Could not decode to UTF-8",
        "The database {url} is damaged: it holds a text that is not in UTF-8.",
        "See `compilewatch db check` for its row.",
    ),
    (
        "malformed JSON",
        "The database {url} is damaged: it holds what is not JSON.",
        "See `compilewatch db check` for its row.",
    ),
    ("malformed", "The database file {url} is damaged.", "Restore it from a backup."),
    (
        "readonly database",
        "The database {url} cannot be written.",
        "Make the file and its directory writable.",
    ),
    ("read-only transaction", "The database {url} cannot be written.", "Use a server that accepts writes."),
    (
        "permission denied for",
        "The user of {url} may not do that.",
        "Get the privilege, or use another user.",
    ),
    ("disk I/O error", "The disk that holds the database {url} fails.", "See the system's log."),
    (
        "unable to open database file",
        "The database file {url} cannot be opened.",
        "Check the path and its rights.",
    ),
    (
        "Connection refused",
        "No PostgreSQL server answers at {url}.",
        "Start the server, or correct the address.",
    ),
    (
        "authentication failed",
        "The server refused the user or the password of {url}.",
        "Correct the address.",
    ),
    ("no password supplied", "The server asks for a password for {url}.", "Write it into the address."),
    ("does not exist", "The server has no database or user as in {url}.", "Create it with `createdb`."),
    ("could not translate host", "The host in {url} is not known.", "Correct the address."),
    ("failed to resolve host", "The host in {url} is not known.", "Correct the address."),
    ("too many", "The server of {url} accepts no more connections.", "Try again later."),
)
_OTHER = ("The database {url} did not answer: {reason}.", "Check that it is reachable and try again.")


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turn what a user can act on into DatabaseError; our own mistakes (a wrong statement) pass."""
    try:
        yield
    except DBAPIError as error:
        if not _is_trouble(error):
            raise
        raise sentence(str(error.orig), url) from error
    except PoolTimeoutError as error:
        raise sentence("too many connections are in use", url) from error


def _is_trouble(error: DBAPIError) -> bool:
    """Operational errors, a damaged file, and privileges that are missing (SQLSTATE 42501, 25006)."""
    if isinstance(error.orig, sqlite3.DatabaseError):
        return type(error.orig) in (sqlite3.OperationalError, sqlite3.DatabaseError) and not (
            "no such" in str(error.orig) or "syntax error" in str(error.orig)
        )
    sqlstate = getattr(error.orig, "sqlstate", None)
    is_operational = any(base.__name__ == "OperationalError" for base in type(error.orig).__mro__)
    return error.connection_invalidated or sqlstate in ("42501", "25006") or is_operational


def sentence(reason: str, url: str) -> DatabaseError:
    """What a driver said of the database `url`, for a person."""
    for part, message, next_step in _MESSAGES:
        if part in reason:
            return DatabaseError(message.format(url=url), next_step)
    message, next_step = _OTHER
    first_line = reason.strip().partition("\n")[0].rstrip(".")
    return DatabaseError(message.format(url=url, reason=first_line), next_step)


def file_trouble(path: Path, error: OSError, *, creating: bool = False) -> DatabaseError:
    """Why the file system refused a database file."""
    if error.errno == errno.ENOENT and not path.parent.is_dir():
        return DatabaseError(
            f"The directory {path.parent} does not exist.", f"Create it with `mkdir -p {path.parent}`."
        )
    if error.errno == errno.ENOENT and not creating:
        return DatabaseError(
            f"There is no database at {path}.",
            "Run `compilewatch run` to measure into it, or name another one with --db.",
        )
    if error.errno == errno.ENOTDIR:
        return DatabaseError(f"{path.parent} is not a directory.", "Name another file with --db.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT):
        return DatabaseError(
            f"The database file {path} cannot be written.",
            "Make its directory writable, or name another file with --db.",
        )
    return DatabaseError(
        f"The database file {path} cannot be opened: {error.strerror}.", "Name another file with --db."
    )


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
