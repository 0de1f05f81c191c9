"""One trial to run, the diagnostics after it, and what an executor is: it takes jobs, runs each once and says
how they stand.

An executor never carries a result back as the truth: whoever measured a trial has put it into the spool of
its host and from there into the database, under the trial's id. `trials` is for those who only look.

The measured process gets its part as `runner.worker.step.messages.Specification`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import Field

from compilewatch.db.records.fields import Closed, Identifier
from compilewatch.db.records.trial import Build, Strategy, Trial, Workload
from compilewatch.runner.worker.timing.sampling import SamplingPlan


@dataclass(frozen=True)
class Diagnostics:
    """`profile`: a few steps under torch.profiler. `trace_into`: the data directory that gets the compiler's
    own log of a cold compilation; None for no log. `bisect_s`: how long to seek the part of the compiler that
    makes a trial fail, in seconds; 0 does not seek it. `loss_steps`: how long a training is compared with
    eager's, in steps; 0 compares none.
    """

    profile: bool = False
    trace_into: Path | None = None
    bisect_s: float = 0.0
    loss_steps: int = 0

    @property
    def follow(self) -> bool:
        """Whether a process follows a trial that succeeded."""
        return self.profile or self.trace_into is not None or self.loss_steps > 0


NO_DIAGNOSTICS = Diagnostics()


class WorkloadSpec(Workload):
    """The workload of a record, and how the worker builds it."""

    target: str
    kwargs: dict[str, Any] = Field(default={})
    regions: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    task_is_open: bool = False
    """Whether the measured process finds out the task, by what the builder returns."""

    def record(self) -> Workload:
        """Without what only the worker needs."""
        return Workload(**self.model_dump(include=set(Workload.model_fields)))


MatmulPrecision = Literal["highest", "high", "medium"]


class TorchSettings(Closed):
    """Global settings of torch that change speed; stored in the trial's `build.settings`."""

    matmul_precision: MatmulPrecision


class TrialSpec(Closed):
    """One trial to run."""

    trial_id: Identifier
    run_id: Identifier
    suite: str | None
    label: str | None
    workload: WorkloadSpec
    strategy: Strategy
    device: str
    threads: int
    settings: TorchSettings
    sampling: SamplingPlan
    timeout_s: float
    seed: int
    worker_env: dict[str, str] = Field(default={})
    round: int
    build: str | None = None
    stack: Build | None = None
    """The recorded build to measure again; `build` is then only what the plan calls it."""
    interpreter: Path | None = None
    diagnostics: Diagnostics = NO_DIAGNOSTICS
    idle_wait_s: float = 0.0
    """How long to wait for other processes to leave the GPU; then the trial is measured all the same."""

    @property
    def case(self) -> str:
        """Workload and strategy by name, for a person."""
        return f"{self.workload.name} / {self.strategy.name}"


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
