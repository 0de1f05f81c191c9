"""What was measured, on its way to the database: on disk first, then stored, now or when it is back."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from compilewatch.db.engine.repository import CLOCK_SKEW, wrong_moment
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError, DatabaseError, NotFoundError, RecordError
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.records.trial import Trial
from compilewatch.db.store.trials import end_run, save_trial, start_run
from compilewatch.db.units import plural
from compilewatch.runner.plan.cancellation import check_cancelled
from compilewatch.runner.storage.spool import Replay, Spool, TravellingSpool

_TAKE_AWAY = "Take its file in `ends` away and import again."
_LOG = logging.getLogger("compilewatch.runner")


class NotPersistedError(CompilewatchError):
    """Neither the disk nor the database took a trial."""


def store_waiting(database: Database, spool: Spool) -> Replay:
    """Store every trial and every run's end that waits on disk. Raises DatabaseError, and
    PreparationCancelledError as `check_cancelled` does; the rest waits on.
    """

    def save(trial: Trial) -> None:
        check_cancelled()
        save_trial(database, trial)

    replay = spool.replay(save)
    if spool.travels:
        return replay
    for run_id, ended_at, status in spool.waiting_ends():
        try:
            end_run(database, run_id, ended_at, status)
        except NotFoundError:
            _LOG.warning("Run %s, whose end waited on disk, is not in the database.", run_id)
        spool.remove_end(run_id)
    return replay


def import_runs(spool: TravellingSpool, database: Database) -> None:
    """Store how the runs of a directory began and ended, which their trials do not say.

    Raises RecordError for a file that is none of ours, ConflictError for a run that began otherwise.
    """
    announced = {each.run_id: each for each in spool.runs()}
    ends = list(spool.waiting_ends())
    for run_id, ended_at, _ in ends:
        if run_id not in announced:
            raise RecordError(f"Run {run_id} ends in this directory and does not begin there.", _TAKE_AWAY)
        began = announced[run_id].started_at
        if problem := wrong_moment(began, max(began, ended_at), datetime.now(UTC) + CLOCK_SKEW):
            raise RecordError(f"Run {run_id} {problem}.", _TAKE_AWAY)
    for announcement in announced.values():
        start_run(database, **announcement.model_dump())
    for run_id, ended_at, status in ends:
        end_run(database, run_id, ended_at, status)


def persist(trial: Trial, database: Database, spool: Spool) -> bool:
    """Put `trial` on disk, from where it survives a crash, then store all that waits: False while it waits.

    A disk that refuses is passed over where the database takes the trial. Raises NotPersistedError where
    neither does: whoever measured the trial must not count it.
    """
    try:
        spool.put(trial)
    except CompilewatchError as refused:
        try:
            save_trial(database, trial)
        except DatabaseError as error:
            lost = f"{refused.message} {error.message} Trial {trial.trial_id} is lost."
            raise NotPersistedError(lost, refused.next_step) from error
        _LOG.warning("%s Trial %s went straight to the database.", refused.message, trial.trial_id)
        return True
    try:
        store_waiting(database, spool)
    except DatabaseError as error:
        waiting = plural(len(spool.waiting()), "trial")
        _LOG.warning("%s What waits in %s: %s.", error.message, spool.directory, waiting)
        return False
    return True


def note_end(run_id: str, ended_at: datetime, status: RunStatus, database: Database, spool: Spool) -> None:
    """Say how a run ended; where the database is away, the end waits on disk like a trial."""
    if spool.travels:
        spool.put_end(run_id, ended_at, status)
    try:
        end_run(database, run_id, ended_at, status)
    except DatabaseError as error:
        try:
            spool.put_end(run_id, ended_at, status)
        except CompilewatchError as refused:
            _LOG.warning("The end of run %s is lost: %s %s", run_id, error.message, refused.message)
        else:
            _LOG.warning("%s The end of run %s waits in %s.", error.message, run_id, spool.directory)
