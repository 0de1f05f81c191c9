"""What compiling costs by submodule: each compiled by itself in fresh processes, the rest eager."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table

from compilewatch.db.records.trial import Trial
from compilewatch.db.units import count, duration
from compilewatch.runner.output.tables import plain_table

_SCOPE = "submodule:"


def submodule_rows(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """One row for each case of one submodule, the most expensive first call first.

    `first_call_ns` is the median of its trials, and null where none passed; graphs and kernels are those of
    the newest.
    """
    cases: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        if trial.strategy.scope.startswith(_SCOPE):
            cases.setdefault((trial.workload.name, trial.strategy.name), []).append(trial)
    rows = [_row(each) for each in cases.values()]
    return sorted(rows, key=lambda row: -(row["first_call_ns"] or 0))


def _row(trials: list[Trial]) -> dict[str, Any]:
    newest = max(trials, key=lambda trial: trial.started_at)
    times = [trial.cold_start.first_call_ns for trial in trials if trial.cold_start is not None]
    known = [value for value in times if value is not None]
    compiler = newest.compiler
    generated = None if compiler is None else compiler.generated
    return {
        "workload": newest.workload.name,
        "strategy": newest.strategy.name,
        "submodule": newest.strategy.scope.removeprefix(_SCOPE),
        "trials": len(trials),
        "first_call_ns": statistics.median(known) if known else None,
        "graphs": None if compiler is None else compiler.graphs,
        "kernels": None if generated is None else sum(graph.kernels for graph in generated),
    }


def submodule_table(rows: Sequence[dict[str, Any]]) -> Table:
    """The rows for a person."""
    names, figures = ("submodule", "strategy"), ("first call", "graphs", "kernels")
    cells = []
    for row in rows:
        numbers = (duration(row["first_call_ns"]), count(row["graphs"]), count(row["kernels"]))
        cells.append((*(row[name] for name in names), *numbers))
    return plain_table((*names, *figures), cells, right=figures)
