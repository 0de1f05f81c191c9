"""The OSS v3 export worked out from whole records: see `whole_records`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from db.interchange.files.fields import BYTES_PER_GB, NS_PER_MS, NS_PER_S
from db.interchange.write.oss_v3_export import BENCHMARK
from db.records.trial import FailureKind, NumericsStatus, SourceKind, Status, StrategyKind, Trial
from tests.db.interchange.whole_records import figures

_ACCURACY = {
    NumericsStatus.PASS: "pass",
    NumericsStatus.NOT_CHECKED: "pass_due_to_skip",
    NumericsStatus.REPRODUCIBLE: "pass_due_to_skip",
    NumericsStatus.EAGER_TWO_RUNS_DIFFER: "eager_variation",
    NumericsStatus.FAIL: "fail_accuracy",
    NumericsStatus.DEGENERATE: "fail_accuracy",
}
_FAILED = {
    FailureKind.OUT_OF_MEMORY: "OOM",
    FailureKind.TIMEOUT: "timeout",
    FailureKind.WRONG_RESULT: "fail_accuracy",
}


def as_oss_v3(trials: Iterable[Trial]) -> bytes:
    """The export of `trials`."""
    lines = (json.dumps({**_common(trial), "metric": each}) for trial in trials for each in _metrics(trial))
    return "".join(line + "\n" for line in lines).encode()


def _common(trial: Trial) -> dict[str, Any]:
    workload, strategy, suite = trial.workload, trial.strategy, trial.suite or BENCHMARK
    return {
        "timestamp": int(trial.started_at.timestamp()),
        "schema_version": "v3",
        "name": suite,
        "runners": [_runner(trial)],
        "benchmark": {
            "name": BENCHMARK,
            "mode": workload.task.value,
            "dtype": workload.dtype,
            "extra_info": _texts(
                {
                    "device": trial.machine.device,
                    "compilewatch_strategy": strategy.name,
                    "compile_mode": strategy.mode,
                    "cache": strategy.cache.value,
                    "scope": strategy.scope,
                    "batch_size": workload.batch_size,
                    "source": trial.source.name,
                    "trial_id": trial.trial_id,
                    "run_id": trial.run_id,
                }
            ),
        },
        "model": {
            "name": workload.name,
            "type": "workload",
            "backend": strategy.backend or strategy.name,
            "origins": [suite],
            "extra_info": _texts({"version": workload.version, **workload.shape}),
        },
        "dependencies": {"pytorch": _pytorch(trial)},
    }


def _pytorch(trial: Trial) -> dict[str, Any]:
    build = trial.build
    return {
        "repo": "pytorch/pytorch",
        "branch": "",
        "sha": build.torch_git or "",
        "version": build.torch + (f"+{build.torch_variant}" if build.torch_variant else ""),
        "extra_info": _texts(
            {name: getattr(build, name) for name in ("cuda", "driver", "triton", "python")},
        ),
    }


def _runner(trial: Trial) -> dict[str, Any]:
    machine = trial.machine
    gpu = machine.device != "cpu"
    counts: dict[str, Any] = {}
    if machine.cpu_count is not None:
        counts["cpu_count"] = machine.cpu_count
    if machine.ram_bytes is not None:
        counts["avail_mem_in_gb"] = round(machine.ram_bytes / BYTES_PER_GB)
    if not gpu:
        counts |= {"gpu_count": 0, "avail_gpu_mem_in_gb": 0}
    if gpu and machine.device_count is not None:
        counts["gpu_count"] = machine.device_count
    if gpu and machine.device_memory_bytes is not None:
        counts["avail_gpu_mem_in_gb"] = round(machine.device_memory_bytes / BYTES_PER_GB)
    return {
        "name": machine.name,
        "type": machine.device_name,
        "cpu_info": machine.cpu_name or ("" if gpu else machine.device_name),
        "gpu_info": machine.device_name if gpu else "",
        **counts,
        "extra_info": _texts({"os": trial.build.os}),
    }


def _metrics(trial: Trial) -> list[dict[str, Any]]:
    accuracy = None
    if trial.failure is not None:
        accuracy = _FAILED.get(trial.failure.kind, "fail_to_run")
    elif trial.numerics:
        accuracy = _ACCURACY[trial.numerics.status]
    found: list[dict[str, Any]] = []
    if accuracy is not None:
        found.append({"name": "accuracy", "extra_info": {"benchmark_values": [accuracy]}})
    if trial.status is Status.FAILED:
        return found
    told = trial.summary.metrics if trial.summary else {}
    known = told | {name: value for name, value in _figures(trial, told).items() if value is not None}
    return found + [
        {"name": name, "benchmark_values": [value], "target_value": 0.0, "extra_info": _timing(trial, name)}
        for name, value in known.items()
    ]


def _timing(trial: Trial, name: str) -> dict[str, str]:
    method = figures(trial)["timing_method"]
    return {"timing_method": method} if method and name in ("abs_latency", "speedup") else {}


def _figures(trial: Trial, told: dict[str, float]) -> dict[str, float | None]:
    row = figures(trial)
    peaks = [row["peak_bytes"], row["peak_with_compile_bytes"]]
    if trial.source.kind is SourceKind.IMPORTED and trial.machine.device == "cpu":
        peaks.append(row["peak_rss_bytes"])
    peak = next((each for each in peaks if each is not None), None)
    control_peak, cost = row["control_peak_bytes"], row["trial_compile_cost_ns"]
    known = trial.strategy.kind is not StrategyKind.EAGER and cost is not None and cost >= 0
    ratio = control_peak / peak if peak and control_peak else None
    return {
        "abs_latency": None if row["latency_ns"] is None else row["latency_ns"] / NS_PER_MS,
        "speedup": row["speedup"],
        "compilation_latency": cost / NS_PER_S if known else None,
        "compression_ratio": told.get("compression_ratio", ratio),
        "eager_peak_mem": None if control_peak is None else control_peak / BYTES_PER_GB,
        "dynamo_peak_mem": None if peak is None else peak / BYTES_PER_GB,
        "unique_graphs": row["graphs"],
        "graph_breaks": row["graph_breaks"],
    }


def _texts(values: dict[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in values.items() if value is not None}
