"""What saving would do, with nothing saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from sqlalchemy import Connection

from db.session import Database
from db.store_batch import TrialWriter
from db.store_batches import Batch


class _UndoError(Exception):
    """Leaves the rehearsal's transaction, which rolls it back."""


@contextmanager
def rehearsal(db: Database) -> Iterator[Callable[[Iterable[Batch]], tuple[int, int]]]:
    """A `save_batches` whose every call sees what those before it would have stored; the end undoes them all.

    A call that raises leaves nothing for the next one. Writers wait until the block ends.
    """
    with suppress(_UndoError), db.write() as connection:
        yield partial(_save, connection)
        raise _UndoError


def _save(connection: Connection, batches: Iterable[Batch]) -> tuple[int, int]:
    new = known = 0
    with connection.begin_nested():
        writer = TrialWriter(connection)
        for batch in batches:
            added, repeated = writer.save(batch)
            new, known = new + added, known + repeated
    return new, known
