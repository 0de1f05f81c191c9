"""A trial as one flat row: the columns of the CSV and Parquet exports, named as in the queries' frames.

Times are ns, memory is bytes, moments are UTC. What is missing is empty (null in Parquet), never 0.
`latency_ns` is the median of the samples, or what the source's summary says where there are none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from db.records import (
    ColdStart,
    CompilerEvent,
    CompilerFacts,
    Memory,
    Summary,
    Trial,
)
from db.samples import percentile_ns
from db.store_rows import Identifier

_TEXT = (
    "trial_id", "run_id", "suite", "label", "source_kind", "source_name", "machine_id", "machine", "device",
    "device_name", "build_id", "build_label", "torch", "torch_variant", "cuda", "driver", "triton", "cudnn",
    "python", "os", "settings", "workload_id", "workload", "workload_version", "task", "shape", "dtype",
    "item", "strategy_id", "strategy", "strategy_kind", "cache", "scope", "series_id", "status",
    "failure_kind", "failure_message", "numerics_status", "metrics",
)  # fmt: skip
_MOMENTS = ("started_at", "ended_at")
_INTEGERS = (
    "threads", "batch_size", "samples", "control_samples", "time_to_first_result_ns", "first_call_ns",
    "until_steady_ns", "calls_until_steady", "process_tree_cpu_ns", "peak_bytes", "peak_reserved_bytes",
    "peak_with_compile_bytes", "peak_rss_bytes", "control_peak_bytes", "graphs", "graph_breaks", "recompiles",
)  # fmt: skip
_FLOATS = (
    "items_per_iteration", "latency_ns", "latency_p05_ns", "latency_p95_ns", "latency_p99_ns",
    "control_latency_ns", "trial_compile_cost_ns", "speedup", "throughput_per_s", "cpu_stall_fraction",
)  # fmt: skip
_IDENTITIES = ("machine", "build", "workload", "strategy", "series")
KINDS: dict[str, str] = {
    **dict.fromkeys(_TEXT, "text"),
    **dict.fromkeys(_MOMENTS, "moment"),
    **dict.fromkeys(_INTEGERS, "integer"),
    **dict.fromkeys(_FLOATS, "float"),
    "suspect": "flag",
}


def flat_rows(trials: Iterable[Trial]) -> Iterator[tuple[Trial, dict[str, Any]]]:
    """Each trial with every column of KINDS; `shape`, `settings` and `metrics` are JSON text."""
    identifier = Identifier()
    for trial in trials:
        ids = identifier.ids(trial)
        yield (
            trial,
            {
                **_trial(trial),
                **_stack(trial),
                **_case(trial),
                **figures(trial),
                **{f"{name}_id": getattr(ids, name) for name in _IDENTITIES},
            },
        )


def figures(trial: Trial) -> dict[str, Any]:
    """The columns that are results: outcome, latency, memory, compilation."""
    latency = _latency(trial)
    return {**_outcome(trial), **latency, **_cost(trial, latency["latency_ns"])}


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "trial_id": trial.trial_id,
        "run_id": trial.run_id,
        "suite": trial.suite,
        "label": trial.label,
        "started_at": trial.started_at,
        "ended_at": trial.ended_at,
        "source_kind": trial.source.kind.value,
        "source_name": trial.source.name,
    }


def _stack(trial: Trial) -> dict[str, Any]:
    machine, build = trial.machine, trial.build
    return {
        "machine": machine.name,
        "device": machine.device,
        "device_name": machine.device_name,
        "threads": machine.threads,
        "build_label": build.label,
        **{
            name: getattr(build, name)
            for name in ("torch", "torch_variant", "cuda", "driver", "triton", "cudnn", "python", "os")
        },
        "settings": json.dumps(build.settings, sort_keys=True),
    }


def _case(trial: Trial) -> dict[str, Any]:
    workload, strategy = trial.workload, trial.strategy
    return {
        "workload": workload.name,
        "workload_version": workload.version,
        "task": workload.task.value,
        "batch_size": workload.batch_size,
        "shape": json.dumps(workload.shape, sort_keys=True),
        "dtype": workload.dtype,
        "items_per_iteration": workload.items_per_iteration,
        "item": workload.item,
        "strategy": strategy.name,
        "strategy_kind": strategy.kind.value,
        "cache": strategy.cache.value,
        "scope": strategy.scope,
    }


def _outcome(trial: Trial) -> dict[str, Any]:
    failure, numerics = trial.failure, trial.numerics
    return {
        "status": trial.status.value,
        "failure_kind": failure.kind.value if failure else None,
        "failure_message": failure.message if failure else None,
        "numerics_status": numerics.status.value if numerics else None,
        "suspect": trial.device_state.suspect if trial.device_state else None,
        "cpu_stall_fraction": trial.host_state.cpu_stall_fraction if trial.host_state else None,
    }


def _latency(trial: Trial) -> dict[str, Any]:
    summary = trial.summary or Summary()
    ordered, control = sorted(trial.samples_ns), sorted(trial.control_samples_ns)
    latency = percentile_ns(ordered, 0.5) if ordered else summary.latency_ns
    control_latency = percentile_ns(control, 0.5) if control else summary.control_latency_ns
    return {
        "latency_ns": latency,
        "latency_p05_ns": percentile_ns(ordered, 0.05),
        "latency_p95_ns": percentile_ns(ordered, 0.95),
        "latency_p99_ns": percentile_ns(ordered, 0.99),
        "samples": len(ordered) or summary.n,
        "control_latency_ns": control_latency,
        "control_samples": len(control) or None,
        "speedup": control_latency / latency if control_latency is not None and latency else None,
        "throughput_per_s": _throughput(trial, latency, summary),
        "metrics": json.dumps(summary.metrics, sort_keys=True) if summary.metrics else None,
    }


def _throughput(trial: Trial, latency_ns: float | None, summary: Summary) -> float | None:
    """Items per second: of the source where it says so, else items per iteration over latency."""
    items = trial.workload.items_per_iteration
    if summary.throughput_per_s is not None or items is None or not latency_ns:
        return summary.throughput_per_s
    return items / latency_ns * 1e9


def _cost(trial: Trial, latency_ns: float | None) -> dict[str, Any]:
    cold, memory = trial.cold_start or ColdStart(), trial.memory or Memory()
    compiler = trial.compiler or CompilerFacts()
    return {
        "time_to_first_result_ns": cold.total_ns,
        "first_call_ns": cold.first_call_ns,
        "until_steady_ns": cold.until_steady_ns,
        "calls_until_steady": cold.calls_until_steady,
        "trial_compile_cost_ns": _compile_cost(cold, latency_ns),
        "process_tree_cpu_ns": cold.process_tree_cpu_ns,
        **memory.model_dump(),
        "graphs": compiler.graphs,
        "graph_breaks": _events(compiler.graph_breaks),
        "recompiles": _events(compiler.recompiles),
    }


def _compile_cost(cold: ColdStart, latency_ns: float | None) -> float | None:
    """What the calls until steady took beyond as many steady ones."""
    if cold.until_steady_ns is None or cold.calls_until_steady is None or latency_ns is None:
        return None
    return cold.until_steady_ns - cold.calls_until_steady * latency_ns


def _events(events: Sequence[CompilerEvent] | None) -> int | None:
    return None if events is None else sum(event.count for event in events)
