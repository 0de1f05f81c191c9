"""Executes a plan: each trial is on disk before it counts as measured, then stored. On this machine one job
runs after the other, in a thread beside the one that watches.
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Condition, Event, Thread
from typing import Any, Protocol

from compilewatch.db.engine.session import Database
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.records.trial import FailureKind, Status, Trial
from compilewatch.db.store.trials import start_run
from compilewatch.runner.device.lock import DeviceBusyError
from compilewatch.runner.plan.plan import TRIALS_PER_RUN, Plan, canary_specs
from compilewatch.runner.plan.trial_spec import ENDED, Executor, Job, JobState
from compilewatch.runner.process.spool import (
    Announcement,
    Spool,
    TravellingSpool,
    note_end,
    persist,
    store_waiting,
)
from compilewatch.runner.process.supervise import run_canaries, run_trial

OnPhase = Callable[[str], None]


def measure_job(
    job: Job,
    *,
    on_phase: OnPhase,
    is_cancelled: Callable[[], bool],
    wait_s: float | None = None,
) -> list[Trial]:
    """Measure one job in fresh processes: its records, none for canaries that were cancelled.

    Raises DeviceBusyError when cancelled before it began, after `wait_s` for the device, or where no lock can
    be had.
    """
    ways: dict[str, Any] = {"on_phase": on_phase, "is_cancelled": is_cancelled}
    ways |= {"interpreter": str(job.specs[0].interpreter or sys.executable), "wait_s": wait_s}
    return run_canaries(job.specs, **ways) if job.is_canaries else [run_trial(job.specs[0], **ways)]


class LocalExecutor:
    """The default. Each trial is in the spool before its job counts as done, then stored."""

    def __init__(
        self,
        database: Database,
        spool: Spool,
        *,
        on_phase: OnPhase = lambda _phase: None,
        admits: Callable[[Job], bool] = lambda _job: True,
        wait_s: float | None = None,
    ) -> None:
        self._database = database
        self._spool = spool
        self._on_phase = on_phase
        self._admits = admits
        self._wait_s = wait_s
        self._changed = Condition()
        self._waiting: deque[Job] = deque()
        self._states: dict[str, JobState] = {}
        self._trials: dict[str, list[Trial]] = {}
        self._running: tuple[str, Event] | None = None
        self._closed = False
        self._error: BaseException | None = None
        self._thread = Thread(target=self._work, name="measuring", daemon=True)
        self._thread.start()

    def submit(self, jobs: Iterable[Job]) -> None:
        with self._changed:
            for job in jobs:
                if job.job_id not in self._states:
                    self._states[job.job_id] = JobState.QUEUED
                    self._waiting.append(job)
            self._changed.notify_all()

    def cancel(self, job_ids: Collection[str]) -> None:
        with self._changed:
            for job in [job for job in self._waiting if job.job_id in job_ids]:
                self._waiting.remove(job)
                self._states[job.job_id] = JobState.CANCELLED
            if self._running is not None and self._running[0] in job_ids:
                self._running[1].set()
            self._changed.notify_all()

    def status(self, job_ids: Collection[str]) -> Mapping[str, JobState]:
        with self._changed:
            if self._error is not None:
                raise self._error
            return {job_id: self._states[job_id] for job_id in job_ids if job_id in self._states}

    def trials(self, job_id: str) -> list[Trial]:
        with self._changed:
            return self._trials.get(job_id, [])

    def wait(self, timeout_s: float) -> None:
        with self._changed:
            self._changed.wait(timeout_s)

    def capacity(self) -> int:
        return 1

    def close(self) -> None:
        with self._changed:
            self._closed = True
            if self._running is not None:
                self._running[1].set()
            self._changed.notify_all()
        self._thread.join()

    def _work(self) -> None:
        while (begun := self._next()) is not None:
            job, should_end = begun
            job_id = job.job_id
            try:
                trials = measure_job(
                    job, on_phase=self._on_phase, is_cancelled=should_end.is_set, wait_s=self._wait_s
                )
                for trial in trials:
                    persist(trial, self._database, self._spool)
            except DeviceBusyError as error:
                # Cancelled while it waited for the device, waited too long, or there is no lock to be had.
                self._end(job_id, JobState.CANCELLED, [], None if should_end.is_set() else error)
            except BaseException as error:  # noqa: BLE001 - raised again where somebody asks for the status
                self._end(job_id, JobState.CANCELLED, [], error)
            else:
                cancelled = should_end.is_set()
                self._end(job_id, JobState.CANCELLED if cancelled else JobState.DONE, trials, None)

    def _next(self) -> tuple[Job, Event] | None:
        """The next job, begun, with the event that says that it should end; None where there will be none."""
        with self._changed:
            while True:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed or self._error is not None:
                    return None
                job = self._waiting.popleft()
                try:
                    if self._admits(job):
                        break
                except BaseException as error:  # noqa: BLE001 - raised again where somebody asks for the status
                    self._error = error
                    self._changed.notify_all()
                    return None
                self._states[job.job_id] = JobState.CANCELLED
                self._changed.notify_all()
            should_end = Event()
            self._running = (job.job_id, should_end)
            self._states[job.job_id] = JobState.RUNNING
            self._changed.notify_all()
            return job, should_end

    def _end(self, job_id: str, state: JobState, trials: list[Trial], error: BaseException | None) -> None:
        with self._changed:
            self._running = None
            self._states[job_id] = state
            self._trials[job_id] = trials
            self._error = error
            self._changed.notify_all()


_LOG = logging.getLogger("compilewatch.runner")
_WAIT_S = 0.2


class Progress(Protocol):
    """Told what happens while a plan is executed, perhaps by another thread than the one that executes it."""

    def trial_started(self, number: int, workload: str, strategy: str, build: str | None) -> None:
        """Trial `number` of the plan, counted from 1, begins; `build` names its build where several take
        turns.
        """

    def phase(self, name: str) -> None:
        """The running trial begins the phase `name`, such as "build_model"."""

    def trial_finished(self, trial: Trial) -> None:
        """The running trial ended, passed or failed."""


@dataclass(frozen=True)
class RunOutcome:
    """What one execution came to, without the trials that were cancelled.

    `waiting` trials are on disk only, until the database is back.
    """

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
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    admits: Callable[[Job], bool] = lambda _job: True,
    wait_s: float | None = None,
    begun: Collection[str] = (),
) -> RunOutcome:
    """Measure every trial of `plan` here, in its order, and store each as soon as it ends.

    A failed trial is a result and the plan goes on. Once `is_cancelled` says so, the running trial ends, is
    stored as `cancelled`, and nothing more is measured. What `admits` refuses when its turn comes is left
    out. The runs `begun` go on: nobody announces them again. Raises DatabaseError when the runs cannot be
    announced; nothing is measured then. Raises DeviceBusyError where others had the device for `wait_s`
    (None: wait for ever); the runs end as cancelled.
    """
    store_waiting(database, spool)
    announce(plan, database, started_at := clock(), without=begun)
    if isinstance(spool, TravellingSpool):
        for announcement in announcements(plan, started_at):
            spool.put_run(announcement)
    executor = LocalExecutor(database, spool, on_phase=progress.phase, admits=admits, wait_s=wait_s)
    status = RunStatus.CANCELLED
    try:
        measured, failed = run_jobs(jobs_of(plan), executor, progress, is_cancelled)
        interrupted = is_cancelled()
        status = RunStatus.CANCELLED if interrupted else RunStatus.FINISHED
    finally:
        executor.close()
        for run in plan.runs:
            note_end(run.run_id, clock(), status, database, spool)
    return RunOutcome(measured, failed, len(spool.waiting()), interrupted)


def announce(plan: Plan, database: Database, started_at: datetime, *, without: Collection[str] = ()) -> None:
    """Say that the runs of `plan` begin, but those `without`. Raises DatabaseError."""
    for run in announcements(plan, started_at):
        if run.run_id not in without:
            start_run(database, **run.model_dump())


def announcements(plan: Plan, started_at: datetime) -> list[Announcement]:
    """How each run of `plan` begins."""
    return [
        Announcement(
            run_id=run.run_id,
            suite=run.suite,
            label=run.label,
            started_at=started_at,
            planned_trials=run.planned_trials and run.planned_trials + TRIALS_PER_RUN * plan.canaries,
        )
        for run in plan.runs
    ]


def jobs_of(plan: Plan) -> Iterator[Job]:
    """The trials of a plan, with the machine's control series of each run before and after them."""
    yield from _canaries(plan)
    yield from (Job((spec,)) for spec in plan.trials)
    yield from _canaries(plan)


def _canaries(plan: Plan) -> Iterator[Job]:
    for run in plan.runs if plan.canaries else ():
        first = next(spec for spec in plan.trials if spec.run_id == run.run_id)
        yield Job(canary_specs(first), is_canaries=True)


def run_jobs(
    jobs: Iterable[Job],
    executor: Executor,
    progress: Progress,
    is_cancelled: Callable[[], bool],
    *,
    is_abandoned: Callable[[], bool] = lambda: False,
    wait_s: float = _WAIT_S,
) -> tuple[int, int]:
    """Have `jobs` measured and watch them to their end: how many trials were measured, how many failed.

    Canaries count as neither; one that fails is stored and leaves the run as it is. Once `is_cancelled`
    says so, what is not done yet is cancelled; once `is_abandoned` does, it goes on unwatched. Raises what
    `executor.status` raises.
    """
    watch = _Watch(jobs, progress)
    executor.submit(watch.remaining.values())
    has_cancelled = False
    while watch.remaining and not is_abandoned():
        if is_cancelled() and not has_cancelled:
            executor.cancel(list(watch.remaining))
            has_cancelled = True
        states = executor.status(list(watch.remaining))
        ended = [job_id for job_id, state in states.items() if state in ENDED]
        for job_id in ended:
            watch.on_ended(job_id, executor.trials(job_id))
        for job_id, state in states.items():
            if state is JobState.RUNNING:
                watch.on_started(job_id)
        if not ended:
            executor.wait(wait_s)
    return watch.measured, watch.failed


class _Watch:
    """The jobs that are not done, in their order; counts the others and tells a `Progress`."""

    def __init__(self, jobs: Iterable[Job], progress: Progress) -> None:
        self.remaining = {job.job_id: job for job in jobs}
        trials = (job_id for job_id, job in self.remaining.items() if not job.is_canaries)
        self._numbers = {job_id: number for number, job_id in enumerate(trials, start=1)}
        self._started: set[str] = set()
        self._takes_turns = len({spec.build for job in self.remaining.values() for spec in job.specs}) > 1
        self._progress = progress
        self.measured = 0
        self.failed = 0

    def on_started(self, job_id: str) -> None:
        job = self.remaining[job_id]
        if job_id in self._started or job.is_canaries:
            return
        self._started.add(job_id)
        (spec,) = job.specs
        build = (spec.build or "this interpreter") if self._takes_turns else None
        self._progress.trial_started(self._numbers[job_id], spec.workload.name, spec.strategy.name, build)

    def on_ended(self, job_id: str, trials: list[Trial]) -> None:
        if trials:
            # It may have come and gone between two looks.
            self.on_started(job_id)
        job = self.remaining.pop(job_id)
        for trial in trials:
            if trial.failure is not None and trial.failure.kind is FailureKind.CANCELLED:
                self._progress.trial_finished(trial)
            elif not job.is_canaries:
                self.measured += 1
                self.failed += trial.status is Status.FAILED
                self._progress.trial_finished(trial)
            elif trial.failure is not None:
                _LOG.warning("%s failed: %s", trial.workload.name, trial.failure.message.partition("\n")[0])
