"""What saving would do, with nothing saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice

from sqlalchemy import Connection

from db.records import Trial
from db.session import Database
from db.store_batch import TrialWriter

_BATCH = 1000


class _UndoError(Exception):
    """Leaves the rehearsal's transaction, which rolls it back."""


@contextmanager
def rehearsal(db: Database) -> Iterator[Callable[[Iterable[Trial]], tuple[int, int]]]:
    """A `save_trials` whose every call sees what those before it would have stored; the end undoes them all.

    A call that raises leaves nothing for the next one. Writers wait until the block ends.
    """
    with suppress(_UndoError), db.write() as connection:
        yield partial(_save, connection)
        raise _UndoError


def _save(connection: Connection, trials: Iterable[Trial]) -> tuple[int, int]:
    new = known = 0
    with connection.begin_nested():
        writer = TrialWriter(connection)
        remaining = iter(trials)
        while chunk := list(islice(remaining, _BATCH)):
            added, repeated = writer.save(chunk)
            new, known = new + added, known + repeated
    return new, known
