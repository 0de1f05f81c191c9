"""What saving would do, with nothing saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from compilewatch.db.engine.session import Database
from compilewatch.db.records.trial import Trial

Written = TypeVar("Written")


class _UndoError(Exception):
    """Leaves the rehearsal's transaction, which rolls it back."""


@contextmanager
def dry_run_session(
    db: Database, write: Callable[[Connection, Iterable[Trial]], Written]
) -> Iterator[Callable[[Iterable[Trial]], Written]]:
    """A `write` whose every call sees what those before it would have stored; the end undoes them all.

    A call that raises leaves nothing for the next one. Writers wait until the block ends.
    """
    with suppress(_UndoError), db.write() as connection:
        yield partial(_nested, connection, write)
        raise _UndoError


def _nested(
    connection: Connection, write: Callable[[Connection, Iterable[Trial]], Written], trials: Iterable[Trial]
) -> Written:
    with connection.begin_nested():
        return write(connection, trials)
