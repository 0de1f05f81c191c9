"""Every write to the database: idempotent, one transaction each; and what one would do, undone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, insert, select, update

from compilewatch.db.engine.repository import (
    bump_data_version,
    latest_moment,
    lock_data_version,
    wrong_moment,
)
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import RUN
from compilewatch.db.errors import ConflictError, NotFoundError, RecordError
from compilewatch.db.records.requests import RUN_TRANSITIONS, RunStatus
from compilewatch.db.records.trial import Trial
from compilewatch.db.store.trial_writer import TRIALS_OF_A_BATCH, TrialWriter


def start_run(
    db: Database,
    *,
    run_id: str,
    suite: str | None,
    label: str | None,
    started_at: datetime,
    planned_trials: int | None,
) -> None:
    """Announce a run before its first trial. Announcing it again with the same content changes nothing.

    Raises ConflictError where the id belongs to a run announced with other content, RecordError for a moment
    that cannot be, as of a host with a wrong clock.
    """
    announced = {"suite": suite, "label": label, "started_at": started_at, "planned_trials": planned_trials}
    with db.write() as connection:
        why = wrong_moment(started_at, None, latest_moment(connection))
        if why is not None:
            raise RecordError(f"Run {run_id} {why}.", "Nothing was measured. Set the clock of this host.")
        lock_data_version(connection)
        stored = connection.execute(select(RUN).where(RUN.c.run_id == run_id)).mappings().one_or_none()
        if stored is None:
            tallies = {"trials": 0, "failed_trials": 0, "cancelled_trials": 0}
            connection.execute(
                insert(RUN).values(run_id=run_id, status=RunStatus.RUNNING, **announced, **tallies)
            )
        elif stored["status"] is None:
            connection.execute(
                update(RUN).where(RUN.c.run_id == run_id).values(status=RunStatus.RUNNING, **announced)
            )
        elif any(stored[name] != value for name, value in announced.items()):
            raise ConflictError(
                f"Run {run_id} was announced already, with other content.", "Give the second run its own id."
            )
        else:
            return
        bump_data_version(connection)


def end_run(db: Database, run_id: str, ended_at: datetime, status: RunStatus) -> None:
    """Say when and how a run ended, as far as `RUN_TRANSITIONS` lets it; what it ended as first stays.

    Raises NotFoundError for a run that was never heard of.
    """
    with db.write() as connection:
        if not end_runs(connection, [run_id], ended_at, status):
            raise NotFoundError(f"There is no run {run_id}.", "See `compilewatch list runs`.")


def set_advice(db: Database, run_id: str, document: Mapping[str, Any]) -> None:
    """Store what `compilewatch advise` found by the trials of a run, in place of what it found before.

    Raises NotFoundError for a run that was never heard of.
    """
    with db.write() as connection:
        lock_data_version(connection)
        changed = connection.execute(update(RUN).where(RUN.c.run_id == run_id).values(advice=dict(document)))
        if not changed.rowcount:
            raise NotFoundError(f"There is no run {run_id}.", "See `compilewatch list runs`.")
        bump_data_version(connection)


def end_runs(connection: Connection, run_ids: Collection[str], ended_at: datetime, status: RunStatus) -> int:
    """`end_run` of those that are known, inside the caller's transaction: how many these are."""
    lock_data_version(connection)
    stored = connection.execute(
        select(RUN.c.run_id, RUN.c.started_at, RUN.c.status).where(RUN.c.run_id.in_(run_ids))
    ).all()
    changed = [run for run in stored if status in RUN_TRANSITIONS[run.status]]
    for run in changed:
        # A clock that was set back meanwhile ends nothing before it began.
        values = {"ended_at": max(ended_at, run.started_at), "status": status}
        connection.execute(update(RUN).where(RUN.c.run_id == run.run_id).values(**values))
    if changed:
        bump_data_version(connection)
    return len(stored)


def save_trial(db: Database, trial: Trial) -> bool:
    """Store one trial: True when it is new, False when it was there with equal content.

    Raises ConflictError where its id is stored with different content.
    """
    new, _ = save_trials(db, [trial])
    return new == 1


def save_trials(db: Database, trials: Iterable[Trial], batch: int = TRIALS_OF_A_BATCH) -> tuple[int, int]:
    """Store trials, all or none of them: how many were new, how many were there with equal content.

    Memory is bounded by `batch` trials, whatever the number of trials. Whatever `trials` raises while it is
    read, and ConflictError for an id stored with different content, leave the database as it was.
    """
    with db.write() as connection:
        return write_trials(connection, trials, batch)


def write_trials(
    connection: Connection, trials: Iterable[Trial], batch: int = TRIALS_OF_A_BATCH
) -> tuple[int, int]:
    """`save_trials` inside the caller's transaction."""
    lock_data_version(connection)
    writer = TrialWriter(connection)
    new, known = writer.save_all(trials, batch)
    if new:
        writer.finish()
    return new, known


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
