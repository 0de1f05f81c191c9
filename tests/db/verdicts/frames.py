"""Trials frames for the judge's tests: columns as the queries return them, filled from a few numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
from pandas import DataFrame

START = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
MS = 1_000_000

_TEXT = """trial_id run_id suite label source_kind source_name machine_id machine device device_name build_id
build_label torch torch_variant cuda driver triton cudnn python os workload_id workload workload_version
task dtype item strategy_id strategy strategy_kind cache scope series_id status failure_kind failure_message
numerics_status"""
_WHOLE = """threads batch_size samples control_samples calls_until_steady peak_bytes peak_reserved_bytes
peak_with_compile_bytes peak_rss_bytes control_peak_bytes graphs graph_breaks recompiles
time_to_first_result_ns first_call_ns until_steady_ns process_tree_cpu_ns"""
_FRACTIONAL = """items_per_iteration latency_ns latency_p05_ns latency_p95_ns latency_p99_ns
control_latency_ns trial_compile_cost_ns cpu_stall_fraction"""
TYPES: dict[str, str] = {
    **dict.fromkeys(_TEXT.split(), "str"),
    **dict.fromkeys(["started_at", "ended_at"], "datetime64[us, UTC]"),
    **dict.fromkeys(_WHOLE.split(), "Int64"),
    **dict.fromkeys(_FRACTIONAL.split(), "Float64"),
    "shape": "object",
    "settings": "object",
    "suspect": "boolean",
}
_numbers = itertools.count(1)


def trial(
    workload: str = "bert", strategy: str = "default", build: str = "old", **fields: Any
) -> dict[str, Any]:
    """One row; `build` is the build id and torch version. Rows made later started later."""
    number = next(_numbers)
    eager = strategy == "eager"
    row: dict[str, Any] = dict.fromkeys(TYPES) | {
        "trial_id": f"T{number:08d}",
        "run_id": "R1",
        "started_at": START + timedelta(seconds=number),
        "machine_id": "m1",
        "machine": "box",
        "device": "cuda",
        "device_name": "NVIDIA H200",
        "build_id": build,
        "torch": build,
        "driver": "580.1",
        "workload_id": f"w-{workload}",
        "workload": workload,
        "workload_version": "v1",
        "task": "inference",
        "batch_size": 8,
        "shape": {"sequence_length": 128},
        "dtype": "bfloat16",
        "strategy_id": f"s-{strategy}",
        "strategy": strategy,
        "strategy_kind": "eager" if eager else "compile",
        "cache": "none" if eager else "cold",
        "scope": "full",
        "status": "ok",
        "numerics_status": "pass",
        "suspect": False,
        "latency_ns": 10.0 * MS,
    }
    if not eager:
        row |= {
            "control_latency_ns": 15.0 * MS,
            "trial_compile_cost_ns": 8e9,
            "peak_bytes": 1 << 30,
            "graphs": 1,
            "graph_breaks": 0,
            "recompiles": 0,
        }
    unknown = fields.keys() - row.keys()
    assert not unknown, unknown
    return row | fields


def frame(rows: Sequence[dict[str, Any]]) -> DataFrame:
    columns = list(dict.fromkeys([*TYPES, *(name for row in rows for name in row)]))
    raw = DataFrame(list(rows), columns=columns)
    return DataFrame({name: pd.Series(raw[name]).astype(TYPES.get(name, "object")) for name in columns})


def sides(
    base: Sequence[float],
    head: Sequence[float],
    *,
    workload: str = "bert",
    strategy: str = "default",
    runs: tuple[str, str] = ("R1", "R1"),
    base_fields: dict[str, Any] | None = None,
    head_fields: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Trials of one case with these latencies in milliseconds, the sides taking turns."""
    rows = []
    for old, new in itertools.zip_longest(base, head):
        if old is not None:
            fields = {"run_id": runs[0], "latency_ns": old * MS} | (base_fields or {})
            rows.append(trial(workload, strategy, "old", **fields))
        if new is not None:
            fields = {"run_id": runs[1], "latency_ns": new * MS} | (head_fields or {})
            rows.append(trial(workload, strategy, "new", **fields))
    return rows
