"""Export to PyTorch's OSS benchmark database v3: one JSON record per metric and line.

Shape: pytorch/test-infra clickhouse_db_schema/benchmark.oss_ci_benchmark_v3/schema.sql. `extra_info` maps
text to text, memory sizes are whole GB. Metrics carry the names and units of PyTorch
`benchmarks/dynamo`, which its dashboard reads: `abs_latency` ms, `speedup`, `compilation_latency` s,
`compression_ratio`, peaks in GB, and `accuracy` as text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from db.interchange.fields import BYTES_PER_GB, NS_PER_MS, NS_PER_S
from db.interchange.flat import figures
from db.records import FailureKind, NumericsStatus, Status, StrategyKind, Trial

BENCHMARK = "compilewatch"
_ACCURACY = {
    NumericsStatus.PASS: "pass",
    NumericsStatus.NOT_CHECKED: "pass_due_to_skip",
    NumericsStatus.EAGER_TWO_RUNS_DIFFER: "eager_variation",
    NumericsStatus.FAIL: "fail_accuracy",
    NumericsStatus.DEGENERATE: "fail_accuracy",
}
_FAILED = {
    FailureKind.OUT_OF_MEMORY: "OOM",
    FailureKind.TIMEOUT: "timeout",
    FailureKind.WRONG_RESULT: "fail_accuracy",
}


def write(trials: Iterable[Trial], output: BinaryIO) -> int:
    """Every metric of every trial as one line; returns how many trials were written."""
    count = 0
    for trial in trials:
        common = _common(trial)
        for metric in _metrics(trial):
            output.write(json.dumps({**common, "metric": metric}).encode() + b"\n")
        count += 1
    return count


def _common(trial: Trial) -> dict[str, Any]:
    build, workload, strategy = trial.build, trial.workload, trial.strategy
    return {
        "timestamp": int(trial.started_at.timestamp()),
        "schema_version": "v3",
        "name": trial.suite or BENCHMARK,
        "runners": [_runner(trial)],
        "benchmark": {
            "name": BENCHMARK,
            "mode": workload.task.value,
            "dtype": workload.dtype,
            "extra_info": _texts(
                device=trial.machine.device,
                compilewatch_strategy=strategy.name,
                compile_mode=strategy.mode,
                cache=strategy.cache.value,
                scope=strategy.scope,
                batch_size=workload.batch_size,
                source=trial.source.name,
                trial_id=trial.trial_id,
                run_id=trial.run_id,
            ),
        },
        "model": {
            "name": workload.name,
            "type": "workload",
            "backend": strategy.backend or strategy.name,
            "origins": [trial.suite or BENCHMARK],
            "extra_info": _texts(version=workload.version, **workload.shape),
        },
        "dependencies": {
            "pytorch": {
                "repo": "pytorch/pytorch",
                "branch": "",
                "sha": build.torch_git or "",
                "version": build.torch + (f"+{build.torch_variant}" if build.torch_variant else ""),
                "extra_info": _texts(
                    cuda=build.cuda, driver=build.driver, triton=build.triton, python=build.python
                ),
            }
        },
    }


def _runner(trial: Trial) -> dict[str, Any]:
    machine = trial.machine
    gpu = machine.device != "cpu"
    return {
        "name": machine.name,
        "type": machine.device_name,
        "cpu_info": machine.cpu_name or ("" if gpu else machine.device_name),
        "cpu_count": machine.cpu_count or 0,
        "avail_mem_in_gb": round((machine.ram_bytes or 0) / BYTES_PER_GB),
        "gpu_info": machine.device_name if gpu else "",
        "gpu_count": (machine.device_count or 0) if gpu else 0,
        "avail_gpu_mem_in_gb": round((machine.device_memory_bytes or 0) / BYTES_PER_GB),
        "extra_info": _texts(os=trial.build.os),
    }


def _metrics(trial: Trial) -> Iterator[dict[str, Any]]:
    """The figures that are known; what is missing has no record, for PyTorch's dashboard averages zeros."""
    accuracy = _accuracy(trial)
    if accuracy is not None:
        # In a list and in extra_info: `output_json` in pytorch/pytorch benchmarks/dynamo/common.py.
        yield {"name": "accuracy", "extra_info": {"benchmark_values": [accuracy]}}
    if trial.status is Status.FAILED:
        return
    known = {**(trial.summary.metrics if trial.summary else {}), **_figures(trial)}
    for name, value in known.items():
        if value is not None:
            yield {"name": name, "benchmark_values": [value], "target_value": 0.0, "extra_info": {}}


def _accuracy(trial: Trial) -> str | None:
    if trial.failure is not None:
        return _FAILED.get(trial.failure.kind, "fail_to_run")
    return _ACCURACY[trial.numerics.status] if trial.numerics else None


def _figures(trial: Trial) -> dict[str, float | None]:
    row = figures(trial)
    peak = row["peak_with_compile_bytes"] if row["peak_bytes"] is None else row["peak_bytes"]
    control_peak = row["control_peak_bytes"]
    return {
        "abs_latency": _scaled(row["latency_ns"], NS_PER_MS),
        "speedup": row["speedup"],
        "compilation_latency": _compile_seconds(trial, row["trial_compile_cost_ns"]),
        "compression_ratio": control_peak / peak if peak and control_peak else None,
        "eager_peak_mem": _scaled(control_peak, BYTES_PER_GB),
        "dynamo_peak_mem": _scaled(peak, BYTES_PER_GB),
        "unique_graphs": row["graphs"],
        "graph_breaks": row["graph_breaks"],
    }


def _compile_seconds(trial: Trial, cost_ns: float | None) -> float | None:
    """Unknown for eager, which compiles nothing, and where noise makes it negative."""
    if trial.strategy.kind is StrategyKind.EAGER or cost_ns is None or cost_ns < 0:
        return None
    return cost_ns / NS_PER_S


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value / scale


def _texts(**values: object) -> dict[str, str]:
    return {key: str(value) for key, value in values.items() if value is not None}
