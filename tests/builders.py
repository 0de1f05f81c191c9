"""Realistic trial records for tests: one `make_*` function per part of the record.

Every builder returns a valid frozen record; keyword arguments replace fields of that record by name. Trial
ids count up, so two calls never build the same trial; everything else is a pure function of the arguments.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from compilewatch.db.records.strategies import BUILTIN
from compilewatch.db.records.trial import (
    Build,
    CacheState,
    Failure,
    FailureKind,
    Machine,
    Source,
    SourceKind,
    Status,
    Strategy,
    StrategyKind,
    Summary,
    Task,
    Timing,
    Trial,
    Workload,
)
from tests.record_parts import (
    MS,
    SECOND,
    make_cold_start,
    make_compiler_facts,
    make_device_state,
    make_failure,
    make_host_state,
    make_memory,
    make_numerics,
    make_samples,
)

__all__ = [
    "MS",
    "SECOND",
    "START",
    "make_build",
    "make_cold_start",
    "make_compiler_facts",
    "make_device_state",
    "make_failure",
    "make_history",
    "make_host_state",
    "make_imported",
    "make_machine",
    "make_memory",
    "make_numerics",
    "make_samples",
    "make_strategy",
    "make_trial",
    "make_workload",
]

START = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)

_WORKLOADS: dict[str, dict[str, Any]] = {
    "bert-base": {
        "batch_size": 8,
        "shape": {"sequence_length": 128},
        "dtype": "bfloat16",
        "item": "sequence",
    },
    "resnet-50": {
        "batch_size": 32,
        "shape": {"height": 224, "width": 224},
        "dtype": "float16",
        "item": "image",
    },
    "mlp": {
        "task": Task.TRAINING,
        "batch_size": 64,
        "shape": {"features": 512},
        "dtype": "float32",
        "item": "row",
    },
    "elementwise": {
        "task": Task.FUNCTION,
        "shape": {"elements": 1 << 22},
        "dtype": "float32",
        "item": "element",
    },
}
_SPEED = {"eager": 1.0, "default": 0.7, "reduce-overhead": 0.6, "max-autotune": 0.55}
_trial_numbers = itertools.count(1)


def make_workload(name: str = "bert-base", **overrides: Any) -> Workload:
    """A workload known by name here, or any other name with the sizes of a small model."""
    known = _WORKLOADS.get(
        name, {"batch_size": 4, "shape": {"features": 128}, "dtype": "float32", "item": "row"}
    )
    fields: dict[str, Any] = {
        "name": name,
        "version": hashlib.sha256(name.encode()).hexdigest()[:6],
        "task": Task.INFERENCE,
        "items_per_iteration": float(known.get("batch_size", 1)),
        **known,
    }
    return Workload(**(fields | overrides))


def make_strategy(name: str = "default", **overrides: Any) -> Strategy:
    """A built-in strategy by name, or a compiled one whose name follows `mode+variant`."""
    if name in BUILTIN:
        fields = BUILTIN[name].model_dump()
    else:
        mode, _, variant = name.partition("+")
        fields = {
            "name": name,
            "kind": StrategyKind.COMPILE,
            "backend": "inductor",
            "mode": mode,
            "dynamic": True if variant == "dynamic" else None,
            "scope": variant if variant == "regional" else "full",
            "cache": CacheState.COLD,
        }
    return Strategy(**(fields | overrides))


def make_machine(name: str = "gpu-box-3", **overrides: Any) -> Machine:
    """An H200 box; `device="cpu"` gives a machine without a GPU."""
    fields: dict[str, Any] = {
        "name": name,
        "device": "cuda",
        "device_name": "NVIDIA H200",
        "device_count": 1,
        "device_uuid": "GPU-6e1f0b1c-0000-4000-8000-0123456789ab",
        "device_memory_bytes": 150_754_820_096,
        "power_limit_w": 700.0,
        "cpu_name": "AMD EPYC 9554",
        "cpu_count": 16,
        "ram_bytes": 137_438_953_472,
        "threads": 8,
    }
    if overrides.get("device") == "cpu":
        fields |= {"device_name": "AMD EPYC 9554", "device_count": None, "device_uuid": None}
        fields |= {"device_memory_bytes": None, "power_limit_w": None}
    return Machine(**(fields | overrides))


def make_build(torch: str = "2.13.0", **overrides: Any) -> Build:
    fields: dict[str, Any] = {
        "torch": torch,
        "torch_git": hashlib.sha256(torch.encode()).hexdigest()[:10],
        "torch_variant": "cu130",
        "cuda": "13.0",
        "driver": "580.159.03",
        "triton": "3.6.0",
        "cudnn": "9.13",
        "python": "3.11.7",
        "os": "Linux 6.18",
        "compiler": "g++ 12.2.0",
        "packages": {"transformers": "5.23.0"},
        "settings": {"matmul_precision": "high", "cudnn_benchmark": False},
    }
    return Build(**(fields | overrides))


def make_trial(
    *,
    workload: Workload | str = "bert-base",
    strategy: Strategy | str = "default",
    machine: Machine | str = "gpu-box-3",
    build: Build | str = "2.13.0",
    latency_ns: float = 8 * MS,
    control_latency_ns: float | None = 12 * MS,
    compile_ns: int = 6 * SECOND,
    samples: int = 12,
    spread: float = 0.01,
    seed: int = 0,
    failure: Failure | FailureKind | str | None = None,
    **overrides: Any,
) -> Trial:
    """One measured trial. Parts are given whole or by their short name (a build by its torch version).

    With `failure` the trial failed and carries no samples unless they are given. Any field of the record
    can be replaced by name, for instance `suite="standard"`, `samples_ns=[1, 2, 3]`, `memory=None`.
    """
    workload = make_workload(workload) if isinstance(workload, str) else workload
    strategy = make_strategy(strategy) if isinstance(strategy, str) else strategy
    compiled = strategy.kind is not StrategyKind.EAGER
    fields: dict[str, Any] = {
        "trial_id": f"01KA8Z7Q3V{next(_trial_numbers):016d}",
        "run_id": "01KA8Z7Q3V5T2M9N4R6S8W0XY0",
        "started_at": START,
        "suite": "standard",
        "source": Source(kind=SourceKind.MEASURED, name="compilewatch 0.1.0"),
        "workload": workload,
        "strategy": strategy,
        "machine": make_machine(machine) if isinstance(machine, str) else machine,
        "build": make_build(build) if isinstance(build, str) else build,
        "status": Status.OK,
    }
    if failure is not None:
        failure = failure if isinstance(failure, Failure) else make_failure(failure)
        fields |= {"status": Status.FAILED, "failure": failure}
    else:
        fields |= _measured_fields(
            latency_ns, control_latency_ns if compiled else None, compile_ns, samples, spread, seed
        )
    fields |= overrides
    fields.setdefault("ended_at", fields["started_at"] + timedelta(seconds=72))
    return Trial(**fields)


def _measured_fields(
    latency_ns: float,
    control_latency_ns: float | None,
    compile_ns: int,
    samples: int,
    spread: float,
    seed: int,
) -> dict[str, Any]:
    compiled = control_latency_ns is not None
    fields: dict[str, Any] = {
        "cold_start": make_cold_start(latency_ns, compile_ns=compile_ns, compiled=compiled),
        "warmup_ns": [round(latency_ns * 12), round(latency_ns * 1.1)],
        "samples_ns": make_samples(latency_ns, samples, seed=seed, spread=spread),
        "memory": make_memory() if compiled else make_memory(control_peak_bytes=None),
        "device_state": make_device_state(),
        "host_state": make_host_state(),
    }
    if control_latency_ns is not None:
        fields |= {
            "control_warmup_ns": [round(control_latency_ns * 2)],
            "control_samples_ns": make_samples(control_latency_ns, samples, seed=seed + 1, spread=spread),
            "compiler": make_compiler_facts(),
            "numerics": make_numerics(),
        }
    return fields


def make_timing(method: str = "gated", *, headline: str = "wall_sync", control: bool = True) -> Timing:
    """How the steps of a GPU, or with `host` of a CPU, were timed."""
    gate = {"kind": "spin_kernel", "steps": 1, "samples": 12, "verified": 11, "retries": 2}
    side: dict[str, Any] = {"method": method, "gate": gate if method == "gated" else None}
    if method != "host":
        side |= {"launches": 9.0, "synchronises": False, "streams": 1, "pipelined_steps": 20}
        side |= {"sm_clock_mhz": [1830.0, 1980.0, 1980.0]}
    flush = None if method == "host" else True
    return Timing(headline=headline, flush_l2=flush, side=side, control=side if control else None)


def make_timed(
    device_ns: float = 5 * MS,
    issue_ns: float = 3 * MS,
    *,
    control_device_ns: float | None = 6 * MS,
    control_issue_ns: float = 9 * MS,
    method: str = "gated",
    headline: str = "wall_sync",
    samples: int = 12,
    spread: float = 0.01,
    seed: int = 0,
    **overrides: Any,
) -> Trial:
    """A trial with four times a side of a GPU.

    Pipelined wall time is the longer of device and issue time, synchronised wall time their sum.
    """
    sides = {"": (device_ns, issue_ns)}
    if control_device_ns is not None:
        sides["control_"] = (control_device_ns, control_issue_ns)
    fields: dict[str, Any] = {"samples_ns": [], "control_samples_ns": []}
    fields["timing"] = make_timing(method, headline=headline, control=control_device_ns is not None)
    for number, (prefix, (device, issue)) in enumerate(sides.items()):
        times = {"device": device, "issue": issue, "wall_sync": device + issue}
        times["wall_pipelined"] = max(device, issue)
        for place, (name, value) in enumerate(times.items()):
            own_seed = seed * 100 + number * 10 + place
            fields[f"{prefix}{name}_ns"] = make_samples(value, samples, seed=own_seed, spread=spread)
    if control_device_ns is None:
        overrides = {"strategy": "eager", "control_latency_ns": None} | overrides
    return make_trial(seed=seed, **(fields | overrides))


def make_imported(**overrides: Any) -> Trial:
    """A trial that knows only a summary, as another tool's result file gives it."""
    fields: dict[str, Any] = {
        "source": Source(kind=SourceKind.IMPORTED, name="dynamo-csv"),
        "summary": Summary(latency_ns=8 * MS, control_latency_ns=12 * MS, n=30),
        "samples_ns": [],
        "control_samples_ns": [],
        "warmup_ns": [],
        "control_warmup_ns": [],
        "cold_start": None,
        "memory": None,
        "compiler": None,
        "numerics": None,
        "device_state": None,
        "host_state": None,
    }
    return make_trial(**(fields | overrides))


def make_history(
    *,
    workloads: Sequence[str] = ("bert-base", "resnet-50"),
    strategies: Sequence[str] = ("eager", "default"),
    builds: Sequence[Build | str] = ("2.11.0", "2.12.0", "2.13.0"),
    machines: Sequence[Machine | str] = ("gpu-box-3",),
    trials_per_case: int = 3,
    eager_ns: float = 12 * MS,
    latency_ns: Callable[[str, str, int], float] | None = None,
    failures: Iterable[tuple[str, str, int]] = (),
    start: datetime = START,
    every: timedelta = timedelta(days=1),
    between_trials: float = 0.005,
    samples: int = 12,
    seed: int = 0,
) -> list[Trial]:
    """One run per build and machine, `every` apart, oldest first; repeated builds are repeated runs.

    `latency_ns(workload, strategy, run_number)` gives each case's true latency, by default a fixed share of
    `eager_ns` per strategy. Trials of a case differ by the relative `between_trials` (standard deviation).
    Each (workload, strategy, run_number) in `failures` fails in all its trials, out of memory.
    """
    generator = random.Random(seed)
    failing = set(failures)
    latency_of = latency_ns or (lambda _workload, strategy, _run: eager_ns * _SPEED.get(strategy, 0.8))
    cases = list(itertools.product(workloads, strategies))
    trials = []
    for (number, build), machine in itertools.product(enumerate(builds), machines):
        run_start = start + number * every
        name = machine if isinstance(machine, str) else machine.name
        run_id = f"run-{name}-{seed}-{number:04d}"
        for position, (_, (workload, strategy)) in enumerate(
            itertools.product(range(trials_per_case), cases)
        ):
            trials.append(
                make_trial(
                    workload=workload,
                    strategy=strategy,
                    machine=machine,
                    build=build,
                    run_id=run_id,
                    trial_id=f"{run_id}-{position:04d}",
                    started_at=run_start + timedelta(seconds=60 * position),
                    latency_ns=latency_of(workload, strategy, number)
                    * (1 + generator.gauss(0, between_trials)),
                    control_latency_ns=latency_of(workload, "eager", number)
                    * (1 + generator.gauss(0, between_trials)),
                    failure=FailureKind.OUT_OF_MEMORY if (workload, strategy, number) in failing else None,
                    samples=samples,
                    seed=generator.randrange(2**31),
                )
            )
    return trials


def make_gated_history(
    *,
    host_bound: Sequence[str] = ("bert-base", "gpt2", "lstm", "vit"),
    device_bound: Sequence[str] = ("mlp", "resnet-50", "unet"),
    builds: Sequence[Build | str] = ("2.11.0", "2.13.0"),
    slower_host: Mapping[str, float] | None = None,
    slower_device: Mapping[str, float] | None = None,
    trials_per_case: int = 5,
    start: datetime = START,
    seed: int = 0,
) -> list[Trial]:
    """A GPU's trials with four times a side, eager and `default`, one run per build, a day apart.

    On the last build, compiled steps of a workload take `slower_host` times as long to issue and
    `slower_device` times as long on the device; by default only the host moved, in "bert-base" by 12 %.
    """
    hosts = {"bert-base": 1.12} if slower_host is None else slower_host
    devices = slower_device or {}
    generator = random.Random(seed)
    cases = list(itertools.product((*host_bound, *device_bound), ("eager", "default")))
    trials = []
    for number, build in enumerate(builds):
        last = number + 1 == len(builds)
        for place, (_, (workload, strategy)) in enumerate(itertools.product(range(trials_per_case), cases)):
            device, issue = (200_000, 400_000) if workload in host_bound else (900_000, 300_000)
            calm, mood = generator.gauss(1, 0.003), generator.gauss(1, 0.01)
            eager = (1.5 * device * generator.gauss(1, 0.003), 1.3 * issue * generator.gauss(1, 0.01))
            own = (
                device * calm * (devices.get(workload, 1.0) if last else 1.0),
                issue * mood * (hosts.get(workload, 1.0) if last else 1.0),
            )
            compiled = strategy != "eager"
            steps: dict[str, Any] = (
                {"control_device_ns": eager[0], "control_issue_ns": eager[1]}
                if compiled
                else {"control_device_ns": None}
            )
            trials.append(
                make_timed(
                    *(own if compiled else eager),
                    **steps,
                    headline="wall_pipelined",
                    seed=generator.randrange(2**24),
                    workload=workload,
                    build=build,
                    run_id=f"run-gated-{seed}-{number:04d}",
                    started_at=start + timedelta(days=number, seconds=60 * place),
                    **({"numerics": make_numerics(**BF16_NUMERICS)} if compiled else {}),
                )
            )
    return trials


BF16_NUMERICS: dict[str, Any] = {
    "rmse_result": 0.0038,
    "rmse_reference": 0.001,
    "rms_exact": 1.0,
    "dtype": "bfloat16",
}
"""An error of about one step of bf16, 3.8 times that of eager."""
