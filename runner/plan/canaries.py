"""The control series of a machine: which workloads they are, and their trials before and after a run."""

from __future__ import annotations

from ulid import ULID

from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Task
from compilewatch.runner.catalog.definition import WorkloadDefinition
from compilewatch.runner.plan.plan import workload_spec
from compilewatch.runner.plan.trial_spec import TrialSpec

TIMEOUT_S = 120.0
TRIALS_PER_RUN = 6
"""Three workloads before and three after."""

_MIB = 2**20


def canary_workloads(device: str) -> tuple[WorkloadDefinition, ...]:
    """The three workloads at the size for `device`: milliseconds a step on a CPU, less on a GPU."""
    gpu = device != "cpu"
    size, copied = (4096, 256 * _MIB) if gpu else (512, 32 * _MIB)
    return (
        _canary("gemm", size, "bfloat16" if gpu else "float32", 2.0 * size**3, "operation"),
        _canary("copy", copied, "uint8", float(copied), "byte"),
        # Half of what a GPU's queue takes: more would wait for a place in it.
        _canary("launch", 500, "float32", 500.0, "launch"),
    )


def _canary(name: str, size: int, dtype: str, items: float, item: str) -> WorkloadDefinition:
    return WorkloadDefinition(
        name=f"canary-{name}",
        task=Task.FUNCTION,
        target=f"compilewatch.runner.worker.canary:{name}",
        shape={"size": size},
        dtype=dtype,
        items_per_iteration=items,
        item=item,
    )


def canary_specs(trial: TrialSpec) -> tuple[TrialSpec, ...]:
    """One eager trial of each canary under the conditions of `trial`: its run, build, device and threads."""
    return tuple(
        trial.model_copy(
            update={
                "trial_id": str(ULID()),
                "workload": workload_spec(definition),
                "strategy": EAGER,
                "timeout_s": TIMEOUT_S,
            }
        )
        for definition in canary_workloads(trial.device)
    )
