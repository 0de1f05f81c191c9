"""Executes a plan, one trial after the other: each is on disk before it counts as measured, then stored."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from db.errors import DatabaseError
from db.records import Status, Trial
from db.runs import RunStatus
from db.session import Database
from db.store import end_run, save_trial, start_run
from runner.canaries import TRIALS_PER_RUN, canary_specs
from runner.device_lock import DeviceBusyError
from runner.plan import Plan
from runner.spool import Spool
from runner.supervise import run_canaries, run_trial
from runner.trial_spec import TrialSpec

_LOG = logging.getLogger("compilewatch.runner")


class Progress(Protocol):
    """Told what happens while a plan is executed."""

    def trial_started(self, number: int, workload: str, strategy: str) -> None: ...

    def phase(self, name: str) -> None: ...

    def trial_finished(self, trial: Trial) -> None: ...


@dataclass(frozen=True)
class Outcome:
    """What one execution came to. `waiting` trials are on disk only, until the database is back."""

    measured: int
    failed: int
    waiting: int
    interrupted: bool


def execute(
    plan: Plan,
    database: Database,
    spool: Spool,
    *,
    progress: Progress,
    is_cancelled: Callable[[], bool],
    lock_dir: Path | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Outcome:
    """Measure every trial of `plan` in its order and store each as soon as it ends.

    A failed trial is a result and the plan goes on. Once `is_cancelled` says so, the running trial ends, is
    stored as `cancelled`, and nothing more is measured. Raises DatabaseError when the runs cannot be
    announced; nothing is measured then.
    """
    spool.replay(lambda trial: save_trial(database, trial))
    for run in plan.runs:
        start_run(
            database,
            run_id=run.run_id,
            suite=run.suite,
            label=run.label,
            started_at=clock(),
            planned_trials=run.planned_trials + (TRIALS_PER_RUN if plan.canaries else 0),
        )
    _measure_canaries(plan, database, spool, lock_dir, is_cancelled)
    measured = failed = 0
    for number, spec in enumerate(plan.trials, start=1):
        if is_cancelled():
            break
        progress.trial_started(number, spec.workload.name, spec.strategy.name)
        try:
            trial = _measure(spec, lock_dir, progress, is_cancelled)
        except DeviceBusyError:
            if not is_cancelled():
                raise
            break
        _keep(trial, database, spool)
        measured += 1
        failed += trial.status is Status.FAILED
        progress.trial_finished(trial)
    _measure_canaries(plan, database, spool, lock_dir, is_cancelled)
    interrupted = is_cancelled()
    _announce_end(plan, database, RunStatus.CANCELLED if interrupted else RunStatus.FINISHED, clock())
    return Outcome(measured, failed, len(spool.waiting()), interrupted)


def _measure(
    spec: TrialSpec, lock_dir: Path | None, progress: Progress, is_cancelled: Callable[[], bool]
) -> Trial:
    return run_trial(
        spec,
        interpreter=str(spec.interpreter or sys.executable),
        lock_dir=lock_dir,
        on_phase=progress.phase,
        is_cancelled=is_cancelled,
    )


def _measure_canaries(
    plan: Plan, database: Database, spool: Spool, lock_dir: Path | None, is_cancelled: Callable[[], bool]
) -> None:
    """The machine's control series for each run. One that fails is stored and leaves the run as it is."""
    for run in plan.runs if plan.canaries else ():
        first = next(spec for spec in plan.trials if spec.run_id == run.run_id)
        if is_cancelled():
            return
        try:
            trials = run_canaries(
                canary_specs(first),
                interpreter=str(run.interpreter or sys.executable),
                lock_dir=lock_dir,
                is_cancelled=is_cancelled,
            )
        except DeviceBusyError:
            if not is_cancelled():
                raise
            return
        for trial in trials:
            _keep(trial, database, spool)
            if trial.failure is not None:
                _LOG.warning("%s failed: %s", trial.workload.name, trial.failure.message.partition("\n")[0])


def _keep(trial: Trial, database: Database, spool: Spool) -> None:
    """Spool first: from here on the trial survives a crash. Then all that waits goes to the database."""
    spool.put(trial)
    try:
        replay = spool.replay(lambda waiting: save_trial(database, waiting))
    except DatabaseError as error:
        _LOG.warning("%s %d trials wait in %s.", error.message, len(spool.waiting()), spool.directory)
        return
    for path in replay.rejected:
        _LOG.warning("%s could not be stored; the reason is beside it.", path)


def _announce_end(plan: Plan, database: Database, status: RunStatus, ended_at: datetime) -> None:
    for run in plan.runs:
        try:
            end_run(database, run.run_id, ended_at, status)
        except DatabaseError as error:
            _LOG.warning("The end of run %s could not be noted: %s", run.run_id, error.message)
