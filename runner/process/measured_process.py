"""One process of a trial: started in its own caches, listened to until it is gone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from db.records.trial import Trial
from runner.device.state import DeviceFacts, DeviceWatch
from runner.plan.diagnostics import NO_DIAGNOSTICS, Diagnostics
from runner.plan.host_stacks import compiler_version
from runner.plan.trial_spec import TrialSpec, WorkloadSpec
from runner.process.failure import oom_kills
from runner.process.pipe import GuardedProcess, ProcessOutcome
from runner.process.record import Listening, assemble
from runner.worker import messages
from runner.worker.messages import Purpose, Record, Specification, read

# What a measured process sees of the runner's environment: an allow-list, its own caches, pinned settings.

# Everything else (PYTHONPATH, VIRTUAL_ENV, LD_LIBRARY_PATH, TORCH*, tokens) would let two runs of one build
# differ, or leak. What a suite needs beyond this it names in `worker_env`, which is recorded.
_ALLOWED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "CC", "CXX"),
        *("CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH"),
        *("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
        *("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ROCM_PATH", "ROCM_HOME"),
    }
)
_ALLOWED_PREFIX = "LC_"

# glibc maps allocations above 128 kB afresh each time, so every element-wise step pays page faults that a
# compiled step, fusing the intermediates away, does not: a speedup of the allocator's making.
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "1073741824"}

# Inductor, Triton and the CUDA driver each keep a cache; the precompiled header follows TMPDIR alone
# (torch/_inductor/codecache.py, _HEADER_DIR), so a cold start needs all four to be empty.
_CACHE_DIRECTORIES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "CUDA_CACHE_PATH": "cuda",
    "TMPDIR": "tmp",
}


def pinned_settings(threads: int) -> dict[str, str]:
    """Variables every measured process gets, whatever the host: part of what is measured."""
    return {
        "OMP_NUM_THREADS": str(threads),
        "OMP_PROC_BIND": "true",
        "OMP_PLACES": "cores",
        **_MALLOC,
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


def recorded_environment(worker_env: Mapping[str, str]) -> dict[str, str]:
    """What `build.settings` says of the environment: what is pinned, with the suite's `worker_env`.

    Without the number of threads, which the machine's record has.
    """
    pinned = {name: value for name, value in pinned_settings(0).items() if name != "OMP_NUM_THREADS"}
    return pinned | dict(worker_env)


def worker_environment(
    scratch: Path, *, threads: int, extra: Mapping[str, str], inherited: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The whole environment of one measured process; creates its empty directories below `scratch`."""
    source = os.environ if inherited is None else inherited
    environment = {
        name: value for name, value in source.items() if name in _ALLOWED or name.startswith(_ALLOWED_PREFIX)
    }
    # torch names its default cache directory after the user and fails for a uid without a name.
    environment.setdefault("USER", "compilewatch")
    environment.setdefault("HOME", str(scratch))
    environment |= pinned_settings(threads)
    for variable, directory in _CACHE_DIRECTORIES.items():
        path = scratch / directory
        path.mkdir(parents=True, exist_ok=True)
        environment[variable] = str(path)
    return environment | dict(extra)


OnPhase = Callable[[str], None]
WORKER = Path(__file__).parents[1] / "worker" / "main.py"
GRACE_S = 3.0


@dataclass
class Attempt:
    """A trial on its way to a record."""

    spec: TrialSpec
    interpreter: str
    is_cancelled: Callable[[], bool]
    device: DeviceFacts
    on_phase: OnPhase = lambda _phase: None
    diagnostics: Diagnostics = NO_DIAGNOSTICS
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    _began_s: float = field(default_factory=time.monotonic)

    def begin(self) -> None:
        """Its time counts from now."""
        self.started_at, self._began_s = datetime.now(UTC), time.monotonic()

    def now(self) -> datetime:
        """Later than `started_at` by what really went by: a clock that is set back ends nothing early."""
        return self.started_at + timedelta(seconds=time.monotonic() - self._began_s)


@dataclass(frozen=True)
class Role:
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
        )


def listen(attempt: Attempt, scratch: Path, role: Role, lock: int) -> Finished:
    """Start one worker in `role` and listen until it is gone, at most the `timeout_s` of its specification.

    `lock` is the descriptor of the device's lock, held for as long as any process of the worker lives.
    Returns on Ctrl-C too, with `interrupted` set.
    """
    spec = attempt.spec
    watch = DeviceWatch(spec.device)
    extra = {**spec.worker_env, **role.environment}
    environment = worker_environment(role.caches, threads=spec.threads, extra=extra)
    listening = Listening(attempt.on_phase, watch)
    # A process that leaves its log has nothing to do with what the measured one was given.
    artifacts = (role.caches if role.purpose == "trace" else scratch) / "artifacts"
    specification = worker_specification(spec, role, sample_device=watch.is_there, artifacts=artifacts)
    kills = oom_kills()
    process = GuardedProcess(
        [attempt.interpreter, "-I", str(WORKER), "{record_fd}"],
        environment=environment,
        scratch=scratch,
        stdin=specification.line(),
        grace_s=GRACE_S,
        lock=lock,
        # The caches of one process are what the next one of the trial starts from.
        keep_scratch=role.purpose != "measure" or attempt.diagnostics != NO_DIAGNOSTICS,
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
    )


def worker_specification(
    spec: TrialSpec, role: Role, *, sample_device: bool, artifacts: Path
) -> Specification:
    """What the worker is sent, with the pinned environment among the recorded settings."""
    settings = spec.settings.model_dump() | {"environment": recorded_environment(spec.worker_env)}
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
        device_state=sample_device,
        purpose=role.purpose,
        workloads=tuple(workloads),
        artifacts=str(artifacts),
    )
