"""Measures on this machine: one job after the other, in a thread beside the one that watches."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from threading import Condition, Event, Thread
from typing import Any

from compilewatch.db.engine.session import Database
from compilewatch.db.records.trial import Trial
from compilewatch.runner.device.lock import DeviceBusyError
from compilewatch.runner.plan.jobs import Job, JobState
from compilewatch.runner.process.supervise import run_canaries, run_trial
from compilewatch.runner.storage.persistence import persist
from compilewatch.runner.storage.spool import Spool

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
