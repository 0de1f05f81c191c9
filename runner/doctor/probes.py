"""What `runner.worker.probes` sent, validated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError

from compilewatch.db.records.fields import Count, Finite, Flag, Name, Record, Text
from compilewatch.db.records.validation import first_problem
from compilewatch.runner.plan.trial_spec import TrialSpec, WorkloadSpec
from compilewatch.runner.process.supervise import run_probes


class Observed(Record):
    """What CUPTI saw of a step. `error`: why a probe broke off; what came before it is there."""

    kernels_ns: Finite | None = None
    launches: Finite | None = None
    graph_launches: Count | None = None
    streams: Count | None = None
    error: Text | None = None


class ProbedWorkload(Observed):
    """One workload, eager: medians in nanoseconds, its gated time by turns with CUPTI's, and over that of
    `do_bench`.
    """

    workload: Name
    gated_ns: Finite | None = None
    wall_pipelined_ns: Finite | None = None
    do_bench_ratio: Finite | None = None


class ProbedFlush(Record):
    """Device time of a step whose input the L2 cache holds, and after a flush, in nanoseconds."""

    read_bytes: Count | None = None
    warm_ns: Finite | None = None
    cold_ns: Finite | None = None
    error: Text | None = None


class ProbedGraph(Observed):
    """A CUDA graph of `kernels` kernels behind the gate."""

    kernels: Count
    gated_ns: Finite | None = None


class Probes(Record):
    """The whole pass. `has_do_bench`: whether Triton is installed."""

    has_do_bench: Flag
    workloads: list[ProbedWorkload]
    l2: ProbedFlush
    graph: ProbedGraph


@dataclass(frozen=True)
class Probed:
    """The pass, or why there is none."""

    probes: Probes | None = None
    problem: str = ""


def probe(spec: TrialSpec, workloads: list[WorkloadSpec], is_stopped: Callable[[], bool]) -> Probed:
    """Run the pass under the conditions of `spec`, until `is_stopped`. Raises as `run_probes` does."""
    content, problem = run_probes(spec, workloads, is_stopped)
    if content is None:
        return Probed(problem=problem)
    try:
        return Probed(Probes.model_validate(content))
    except ValidationError as error:
        return Probed(problem=f"What the process sent is no pass: {first_problem(error, 'all of it')}.")
