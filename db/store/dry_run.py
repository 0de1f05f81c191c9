"""What saving would do, with nothing saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from sqlalchemy import Connection

from compilewatch.db.engine.session import Database
from compilewatch.db.records.trial import Trial
from compilewatch.db.store.trial_writer import TrialWriter


class _UndoError(Exception):
    """Leaves the rehearsal's transaction, which rolls it back."""


@contextmanager
def dry_run_session(db: Database) -> Iterator[Callable[[Iterable[Trial]], tuple[int, int]]]:
    """A `save_trials` whose every call sees what those before it would have stored; the end undoes them all.

    A call that raises leaves nothing for the next one. Writers wait until the block ends.
    """
    with suppress(_UndoError), db.write() as connection:
        yield partial(_save_nested, connection)
        raise _UndoError


def _save_nested(connection: Connection, trials: Iterable[Trial]) -> tuple[int, int]:
    with connection.begin_nested():
        return TrialWriter(connection).save_all(trials)
