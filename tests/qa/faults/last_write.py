"""A process whose n-th write is its last: it is killed as it is about to change a database or a file.

Statements of SQLite are seen by its own trace, those of PostgreSQL by psycopg's cursor and SQLAlchemy's event
of a commit, files by Python's audit hook. What only reads does not count.
"""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psycopg
from sqlalchemy import Engine, event
from sqlalchemy.pool import Pool

from tests.qa.faults.forked import FORKED

_WRITES = re.compile(
    r"\s*(INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ALTER|COMMIT|VACUUM|ANALYZE|ATTACH|PRAGMA journal_mode)",
    re.I,
)
_OPENED_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FILE_OPERATIONS = frozenset(
    {
        *("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.link", "os.symlink"),
        *("os.truncate", "sqlite3.connect"),
    }
)
How = Literal["kill", "disconnect"]


@dataclass(frozen=True)
class Ended:
    """How the process ended, and what it was about to write, in order; the last of a killed one never was."""

    code: int
    writes: list[str]

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL


def writing(
    inside: Path, work: Callable[..., object], arguments: Sequence[Any], *, last: int | None = None
) -> Ended:
    """Do `work` in a process of its own, killed at write number `last` (from 1) or at none.

    Only files `inside` count. The exit code is what `work` returns, where it returns one.
    """
    with tempfile.TemporaryDirectory(prefix="writes-") as scratch:
        log = Path(scratch) / "writes"
        process = FORKED.Process(target=_work, args=(inside, work, tuple(arguments), last, log))
        process.start()
        process.join(120)
        if process.is_alive():
            process.kill()
            raise AssertionError(f"{work} hangs after {log.read_text().splitlines()[-3:]}")
        code = process.exitcode
        process.close()
        assert code is not None
        return Ended(code, log.read_text(encoding="utf-8").splitlines())


def _work(
    inside: Path, work: Callable[..., object], arguments: tuple[Any, ...], last: int | None, log: Path
) -> None:
    descriptor = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    tempfile.tempdir = os.environ["TMPDIR"] = str(inside / "scratch")
    (inside / "scratch").mkdir(exist_ok=True)
    said = os.open(inside / "said.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    os.dup2(said, 1)
    os.dup2(said, 2)
    _watch(_Counter(descriptor, last), str(inside))
    code = work(*arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)


class _Counter:
    def __init__(self, log: int, last: int | None) -> None:
        self._log = log
        self._last = last
        self._count = 0

    def __call__(self, what: str) -> None:
        os.write(self._log, f"{' '.join(what.split())[:90]}\n".encode())
        self._count += 1
        if self._count == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


def _watch(about_to: Callable[[str], None], inside: str) -> None:
    """Have `about_to` called before each write of this process, for as long as it lives."""

    def statement(text: str) -> None:
        if _WRITES.match(text):
            about_to(text)

    def is_inside(path: Any) -> bool:
        return isinstance(path, str | bytes) and inside in str(Path(os.fsdecode(path)).absolute())

    def audited(name: str, arguments: tuple[Any, ...]) -> None:
        if name == "sqlite3.connect/handle":
            connection: sqlite3.Connection = arguments[0]

            # It takes a callback once `connect` has returned, which is before the next call of anything.
            def returned(*_: object) -> None:
                sys.setprofile(None)
                connection.set_trace_callback(statement)

            sys.setprofile(returned)
        elif name == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _OPENED_TO_WRITE and is_inside(path):
                about_to(f"open {Path(os.fsdecode(path)).name}")
        elif name in _FILE_OPERATIONS and is_inside(arguments[0]):
            about_to(f"{name} {Path(os.fsdecode(arguments[0])).name}")

    class Cursor(psycopg.Cursor[Any]):
        def execute(self, query: Any, *more: Any, **options: Any) -> Any:
            statement(str(query))
            return super().execute(query, *more, **options)

        def executemany(self, query: Any, *more: Any, **options: Any) -> None:
            statement(str(query))
            super().executemany(query, *more, **options)

    def connected(connection: Any, _record: object) -> None:
        if isinstance(connection, psycopg.Connection):
            connection.cursor_factory = Cursor

    def committing(connection: Any) -> None:
        if connection.dialect.name == "postgresql":
            statement("COMMIT")

    sys.addaudithook(audited)
    event.listen(Pool, "connect", connected)
    event.listen(Engine, "commit", committing)
