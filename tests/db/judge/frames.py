"""Trials for the judge's tests: sound ones with every metric, filled from a few numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from pandas import DataFrame

from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.history.machine import Compare, EventGroup, machine_history
from compilewatch.db.judge.policy import Policy
from tests.db.metrics import frames

MS = 1_000_000


def trial(
    workload: str = "bert", strategy: str = "default", build: str = "old", **fields: Any
) -> dict[str, Any]:
    """One row; `build` is the build id and torch version."""
    row: dict[str, Any] = {
        "build_id": build,
        "torch": build,
        "machine_id": "m1",
        "device": "cuda",
        "device_name": "NVIDIA H200",
        "driver": "580.1",
        "latency_ns": 10.0 * MS,
    }
    if strategy != "eager":
        row |= {
            "control_latency_ns": 15.0 * MS,
            "trial_compile_cost_ns": 8e9,
            "peak_bytes": 1 << 30,
            "graphs": 1,
            "graph_breaks": 0,
            "recompiles": 0,
        }
    return frames.trial(workload, strategy, **(row | fields))


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


def comparing(trials: DataFrame, policy: Policy | None = None) -> Compare:
    """Verdicts between builds of a trials frame, all of which is their past."""
    return lambda base, head: compare_builds(trials, base, head, policy, history=trials)


def machine_history_of(trials: DataFrame, policy: Policy | None = None) -> tuple[EventGroup, ...]:
    """As `machine_history`, of all that is in a trials frame."""
    return machine_history(trials, comparing(trials, policy), policy)
