"""What can be measured, as rows for `compilewatch list workloads|strategies|suites`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runner.config import Settings
from runner.selection import known_strategies, known_suites, known_workloads

Rows = list[dict[str, Any]]


def _workloads(settings: Settings) -> Rows:
    return [
        {
            "workload": definition.name,
            "task": definition.task.value,
            "batch_size": definition.batch_size,
            "shape": ", ".join(f"{key} {value}" for key, value in definition.shape.items()) or None,
            "dtype": definition.dtype,
            "needs": ", ".join(definition.packages) or None,
            "summary": definition.summary or definition.target,
        }
        for definition in known_workloads(settings).values()
    ]


def _strategies(settings: Settings) -> Rows:
    return [
        {
            "strategy": strategy.name,
            "kind": strategy.kind.value,
            "backend": strategy.backend,
            "mode": strategy.mode,
            "cache": strategy.cache.value if strategy.cache else None,
        }
        for strategy in known_strategies(settings).values()
    ]


def _suites(settings: Settings) -> Rows:
    return [
        {
            "suite": suite.name,
            "trials": suite.trials,
            "workloads": ", ".join(suite.workloads),
            "strategies": ", ".join(suite.strategies),
            "summary": suite.summary,
        }
        for suite in known_suites(settings).values()
    ]


CATALOG: dict[str, Callable[[Settings], Rows]] = {
    "workloads": _workloads,
    "strategies": _strategies,
    "suites": _suites,
}
