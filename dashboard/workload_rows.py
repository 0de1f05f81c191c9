"""A row per workload: eager, its best compiled strategy, and that one's history."""

from __future__ import annotations

from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from db import units
from db.metrics.frame_rows import row_dicts
from db.metrics.groups import floats
from db.strategies import EAGER
from db.wording.marks import bound_cell

HISTORY = 60
_OF_CASES = [
    *("workload_id", "workload_label", "task", "strategy_id", "strategy", "failed_trials"),
    *("latency_ns", "control_latency_ns", "speedup", "speedup_low", "speedup_high"),
    *("break_even", "break_even_steps", "counted_trials", "bound"),
]


def workload_rows(cases: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """One row per workload of `cases`, as texts; `points` are the runs from which the history comes."""
    history: dict[tuple[Any, ...], list[float]] = {}
    # In plain lists: a frame per group costs more than all that is done with them.
    of_case = zip(points["workload_id"].tolist(), points["strategy_id"].tolist(), strict=True)
    speedups = floats(points["speedup"])
    known = (~np.isnan(speedups)).tolist()
    for key, speedup in compress(zip(of_case, speedups.tolist(), strict=True), known):
        history.setdefault(key, []).append(speedup)
    by_workload: dict[str, list[dict[str, Any]]] = {}
    for case in row_dicts(cases[_OF_CASES]):
        by_workload.setdefault(case["workload_label"], []).append(case)
    return pd.DataFrame([_row(label, by_workload[label], history) for label in sorted(by_workload)])


def _row(
    label: str, cases: list[dict[str, Any]], history: dict[tuple[Any, ...], list[float]]
) -> dict[str, Any]:
    failing = sum(1 for case in cases if case["failed_trials"] > 0)
    eager_ns = next((case["latency_ns"] for case in cases if case["strategy"] == EAGER.name), None)
    compiled = [case for case in cases if case["strategy"] != EAGER.name and not pd.isna(case["speedup"])]
    row: dict[str, Any] = {"workload": label, "task": cases[0]["task"], "eager": units.duration(eager_ns)}
    if not compiled:
        missing = ("strategy", "speedup", "interval", "latency", "break_even")
        state = f"{failing} failing" if failing else "eager only"
        bound = bound_cell(cases[0]["bound"])
        return row | {"state": state, "history": [], "bound": bound} | dict.fromkeys(missing, units.MISSING)
    best = max(compiled, key=lambda case: float(case["speedup"]))
    steps = int(best["break_even_steps"]) if best["break_even"] == "steps" else str(best["break_even"])
    return row | {
        "state": f"{failing} failing" if failing else "ok",
        "strategy": best["strategy"],
        "speedup": units.ratio(best["speedup"]),
        "interval": units.interval(
            best["speedup_low"], best["speedup_high"], units.ratio, trials=best["counted_trials"]
        ),
        "history": history.get((best["workload_id"], best["strategy_id"]), [])[-HISTORY:],
        "eager": units.duration(best["control_latency_ns"] if pd.isna(eager_ns) else eager_ns),
        "latency": units.duration(best["latency_ns"]),
        "bound": bound_cell(best["bound"]),
        "break_even": units.steps(steps) if isinstance(steps, int) else steps,
    }
