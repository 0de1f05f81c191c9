"""One process of a trial: started in its own caches, listened to until it is gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from compilewatch.db.records.trial import Code, Trial
from compilewatch.runner.catalog.work_tree import work_tree_of
from compilewatch.runner.device.state import DeviceFacts, DeviceWatch, feeding_cpus, rank_devices
from compilewatch.runner.plan.host_stacks import compiler_version
from compilewatch.runner.plan.interpreter import passed_on, recorded_environment, worker_environment
from compilewatch.runner.plan.trial_spec import TrialSpec, WorkloadSpec
from compilewatch.runner.process.failure import oom_kills
from compilewatch.runner.process.pipe import GuardedProcess, ProcessOutcome
from compilewatch.runner.process.record import Listening, assemble
from compilewatch.runner.worker.step import messages
from compilewatch.runner.worker.step.messages import Purpose, Record, Specification, read

OnPhase = Callable[[str], None]
WORKER = Path(__file__).parents[1] / "worker" / "main.py"
GRACE_S = 3.0


_NOTICED = timedelta(seconds=1)


@dataclass
class Attempt:
    """A trial on its way to a record."""

    spec: TrialSpec
    interpreter: str
    is_cancelled: Callable[[], bool]
    device: DeviceFacts
    on_phase: OnPhase = lambda _phase: None
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    _began_s: float = field(default_factory=time.monotonic)
    clock_set_back: timedelta = timedelta()
    """How far the host's clock was set back since."""

    def begin(self) -> None:
        """Its time counts from now."""
        self.started_at, self._began_s = datetime.now(UTC), time.monotonic()

    def now(self) -> datetime:
        """Later than `started_at` by what really went by: a clock that is set back ends nothing early.

        By more than `_NOTICED` it moves the start with it, for by the new clock the old one is yet to come.
        """
        expected = self.started_at + timedelta(seconds=time.monotonic() - self._began_s)
        ahead = expected - datetime.now(UTC)
        if ahead <= _NOTICED:
            return expected
        self.started_at -= ahead
        self.clock_set_back += ahead
        return expected - ahead


@dataclass(frozen=True)
class ProcessRole:
    """What one process is for, with its caches, the `workloads` of canaries and probes, and additions to its
    environment.
    """

    caches: Path
    purpose: Purpose = "measure"
    workloads: tuple[WorkloadSpec, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Finished:
    """A measured process after its end, with all that was heard of it."""

    outcome: ProcessOutcome
    listening: Listening
    oom_killed: bool
    compiler: str | None
    interrupted: bool
    ended_at: datetime
    code: Code | None = None
    untracked: tuple[str, ...] = ()

    def trial(self, attempt: Attempt, spec: TrialSpec, records: list[Record] | None = None) -> Trial:
        """The record of `spec` from what was heard, or from `records` in place of the ones heard."""
        return assemble(
            spec,
            self.outcome,
            self.listening if records is None else replace(self.listening, records=records),
            started_at=attempt.started_at,
            ended_at=self.ended_at,
            oom_killed=self.oom_killed,
            device=attempt.device,
            compiler=self.compiler,
            code=self.code,
            untracked=self.untracked,
            clock_set_back=attempt.clock_set_back,
        )


def listen(attempt: Attempt, scratch: Path, role: ProcessRole, locks: Sequence[int]) -> Finished:
    """Start one worker in `role` and listen until it is gone, at most the `timeout_s` of its specification.

    `locks` are the descriptors of the devices' locks, held for as long as any process of the worker lives.
    Returns on Ctrl-C too, with `interrupted` set.
    """
    spec = attempt.spec
    devices = rank_devices(spec.device, spec.workload.ranks)
    watch = DeviceWatch(spec.device, devices[1:])
    extra = {**spec.worker_env, **role.environment}
    environment = worker_environment(role.caches, threads=spec.threads, extra=extra)
    listening = Listening(attempt.on_phase, watch)
    # A process that leaves its log has nothing to do with what the measured one was given.
    artifacts = (role.caches if role.purpose == "trace" else scratch) / "artifacts"
    tree = work_tree_of(spec.workload.target, spec.workload.path)
    code, untracked = (None, ()) if tree is None else (tree.state(), tree.untracked())
    specification = worker_specification(spec, role, sample_device=watch.is_there, artifacts=artifacts)
    if tree is not None:
        specification = replace(specification, work_tree=str(tree.root))
    kills = oom_kills()
    process = GuardedProcess(
        [attempt.interpreter, "-I", str(WORKER), "{record_fd}"],
        environment=environment,
        scratch=scratch,
        stdin=specification.line(),
        grace_s=GRACE_S,
        locks=locks,
        # The caches of one process are what the next one of the trial starts from.
        keep_scratch=role.purpose != "measure" or spec.diagnostics.follow,
        on_line=listening.receive,
    )
    interrupted = False
    try:
        outcome = process.run(spec.timeout_s, attempt.is_cancelled)
    except KeyboardInterrupt:
        interrupted, outcome = True, ProcessOutcome(stopped="cancelled")
    return Finished(
        outcome,
        listening,
        oom_killed=oom_kills() > kills,
        compiler=compiler_version(environment),
        interrupted=interrupted,
        ended_at=attempt.now(),
        code=code,
        untracked=untracked,
    )


def worker_specification(
    spec: TrialSpec, role: ProcessRole, *, sample_device: bool, artifacts: Path
) -> Specification:
    """What the worker is sent, with the pinned environment among the recorded settings."""
    environment = passed_on() | recorded_environment(spec.worker_env)
    settings = spec.settings.model_dump() | {"environment": environment}
    if spec.device != "cpu":
        # Samples with and without it are not comparable, unlike those of a longer warm-up.
        settings["flush_l2"] = spec.sampling.flush_l2
    workload, *workloads = (
        read(messages.Workload, each.model_dump(mode="json")) for each in (spec.workload, *role.workloads)
    )
    return Specification(
        workload=workload,
        strategy=read(messages.Strategy, spec.strategy.model_dump(mode="json")),
        sampling=spec.sampling,
        device=spec.device,
        threads=spec.threads,
        seed=spec.seed,
        settings=settings,
        timeout_s=spec.timeout_s,
        device_state=sample_device,
        purpose=role.purpose,
        workloads=tuple(workloads),
        cpus=feeding_cpus(spec.device),
        cpus_of_ranks=tuple(map(feeding_cpus, rank_devices(spec.device, spec.workload.ranks)[1:])),
        artifacts=str(artifacts),
        steps=spec.diagnostics.loss_steps,
    )
