"""Start real trials of the workloads in `workload_fixtures.py`."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import torch

from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import CacheState, Strategy, StrategyKind, Task, Trial
from compilewatch.runner.catalog.definition import WorkloadDefinition
from compilewatch.runner.plan.plan import workload_spec
from compilewatch.runner.plan.trial_spec import TorchSettings, TrialSpec, WorkloadSpec
from compilewatch.runner.process.supervise import run_trial
from compilewatch.runner.worker.step import messages
from compilewatch.runner.worker.step.loading import build_workload, import_builder
from compilewatch.runner.worker.timing.sampling import SamplingPlan
from compilewatch.runner.workloads.built import Built

FIXTURES = Path(__file__).parent
# Neither depends on the model, and together they are two thirds of a cold compilation on a CPU.
FAST_COMPILE = {"TORCHINDUCTOR_VEC_ISA_OK": "1", "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0"}
FEW = {"samples": 10, "max_samples": 10, "min_samples": 2, "warmup_calls": 3, "warmup_ns": 0}
_numbers = itertools.count(1)


def compiled(backend: str, **changes: Any) -> Strategy:
    fields = {"name": f"{backend} test", "kind": StrategyKind.COMPILE, "backend": backend} | changes
    return Strategy(cache=CacheState.COLD, **fields)


def make_spec(fixture: str, strategy: Strategy = EAGER, **changes: Any) -> TrialSpec:
    """A specification for `workload_fixtures.<fixture>`; `kwargs` and `task` are the workload's."""
    target, path = changes.pop("target", f"workload_fixtures:{fixture}"), changes.pop("path", FIXTURES)
    number = next(_numbers)
    workload = WorkloadSpec(
        name=fixture,
        version="1",
        task=changes.pop("task", Task.INFERENCE),
        dtype=changes.pop("dtype", "float32"),
        target=target,
        kwargs=changes.pop("kwargs", {}),
        path=(str(path),),
    )
    fields: dict[str, Any] = {
        "trial_id": f"TRIAL{number}",
        "run_id": "RUN1",
        "suite": None,
        "label": None,
        "workload": workload,
        "strategy": strategy,
        "device": "cpu",
        "threads": 1,
        "settings": TorchSettings(matmul_precision="highest"),
        "sampling": SamplingPlan(**changes.pop("sampling", FEW)),
        "timeout_s": 280.0,  # a busy machine takes ten times as long
        "seed": 0,
        "worker_env": FAST_COMPILE,
        "round": 0,
    }
    return TrialSpec(**fields | changes)


def measure(
    fixture: str, strategy: Strategy = EAGER, *, interpreter: str | None = None, **changes: Any
) -> Trial:
    options: dict[str, Any] = {} if interpreter is None else {"interpreter": interpreter}
    if "on_phase" in changes:
        options["on_phase"] = changes.pop("on_phase")
    return run_trial(make_spec(fixture, strategy, **changes), **options)


def build(definition: WorkloadDefinition, device: str = "cpu", **changes: Any) -> Built:
    """What the worker would build of `definition`, with `changes` of its sizes or arguments."""
    content = workload_spec(definition).model_dump(mode="json") | changes
    workload = messages.read(messages.Workload, content)
    return build_workload(import_builder(workload.target, workload.path), workload, torch.device(device))
