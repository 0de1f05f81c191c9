"""What an executor is: takes jobs, runs each once, tells how they stand; results go through the spool.

An executor never carries a result back as the truth: whoever measured a trial has put it into the spool of
its host and from there into the database, under the trial's id. `trials` is for those who only look.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from compilewatch.db.records.trial import Trial
from compilewatch.runner.plan.trial_spec import TrialSpec


class JobState(StrEnum):
    """`cancelled` may have left a record of a trial that had begun; `done` always did, if of a failure."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


ENDED = (JobState.DONE, JobState.CANCELLED)


@dataclass(frozen=True)
class Job:
    """One trial, or the canaries of a run, which share a process. The first trial's id is the job's."""

    specs: tuple[TrialSpec, ...]
    is_canaries: bool = False

    @property
    def job_id(self) -> str:
        """The first trial's id."""
        return self.specs[0].trial_id


class Executor(Protocol):
    """Any number of threads may use one executor."""

    def submit(self, jobs: Iterable[Job]) -> None:
        """Queue jobs in this order. One whose id is known already, whatever became of it, is left alone."""
        ...

    def cancel(self, job_ids: Collection[str]) -> None:
        """Take out those that are queued, end those that run; the other ids are passed over."""
        ...

    def status(self, job_ids: Collection[str]) -> Mapping[str, JobState]:
        """How each job stands; unknown ids are left out.

        Raises what keeps the executor from measuring anything, such as DeviceBusyError or DatabaseError.
        """
        ...

    def trials(self, job_id: str) -> list[Trial]:
        """The records of an ended job; none where they wait on the disk of their host."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Return when something may have changed, or after `timeout_s`."""
        ...

    def capacity(self) -> int:
        """How many jobs can run at the same time now."""
        ...

    def close(self) -> None:
        """Give up what this executor holds. A local one ends the job that runs."""
        ...
