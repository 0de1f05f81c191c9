"""The tables of the Overview: every workload with its fastest strategy, and what is slower than eager."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from compilewatch.dashboard.charts import sparklines
from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import (
    BREAK_EVEN,
    CASE,
    NO_DIFFERENCE,
    RATES,
    RATES_OF,
    REPAID,
    SPEEDUP_INTERVAL,
    case_facts,
    floors_of,
    row_of,
)
from compilewatch.dashboard.parts.parts import CASE_FACTS, Part, Table, TableColumn
from compilewatch.dashboard.read.data import read_profiled, read_trial
from compilewatch.dashboard.text.glossary import explained
from compilewatch.db import units
from compilewatch.db.cause.profile_words import why
from compilewatch.db.cause.trial_words import step_times
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from compilewatch.db.judge.words.verdicts import row_verdict
from compilewatch.db.metrics.case_modes import fastest
from compilewatch.db.metrics.groups import floats, row_dicts
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.vocabulary import Metric, Verdict

_HISTORY = 60
"""How many runs the history of a row shows."""
_SLOWEST = 5
_OF_CASES = [
    *("workload_id", "workload_label", "task", "strategy_id", "strategy", "strategy_kind"),
    *("cache", "failed_trials"),
    *("latency_ns", "control_latency_ns", "speedup", "speedup_low", "speedup_high"),
    *(*REPAID, "counted_trials", "bound"),
    *RATES_OF,
]
_TIMES = {
    "speedup": TableColumn("Speedup", numeric=True, unit="ratio", explained="Eager over compiled."),
    "interval": SPEEDUP_INTERVAL,
    **parts.quantities("ns", {"latency": "Compiled", "eager": "Eager beside it"}),
}
_WORKLOADS = {
    "workload": parts.WORKLOAD,
    "speedup": _TIMES["speedup"],
    "change": TableColumn(
        "Latency since base", numeric=True, unit="change", explained="Of its case that changed most."
    ),
    "fastest": TableColumn(
        "Fastest strategy", explained="Whose interval clears all others, eager among them."
    ),
    "verdict": TableColumn("Verdict", explained=explained("verdict", "suspected")),
    **parts.hidden(
        {
            "state": TableColumn("State"),
            "task": TableColumn("Task"),
            "strategy": TableColumn("Fastest compiled"),
            **RATES,
            **{name: _TIMES[name] for name in ("interval", "latency", "eager")},
            **BREAK_EVEN,
            **CASE_FACTS,
        }
    ),
}
_SLOW = {**CASE, **_TIMES, **parts.hidden(RATES | CASE_FACTS)}


def slowest(link: Link, cases: pd.DataFrame) -> tuple[Part, ...]:
    """Compiled cases with a speedup below 1, the slowest first, each with the reason that is known."""
    compiled = [case for case in row_dicts(cases[_OF_CASES]) if _is_compiled(case) and case["speedup"] < 1]
    shown = sorted(compiled, key=lambda case: float(case["speedup"]))[:_SLOWEST]
    keys = tuple((case["workload_id"], case["strategy_id"]) for case in shown)
    profiled = read_profiled(str(link.machine), keys)
    floors = floors_of(link.machine)
    reasons = [
        f"{case['workload_label']} with {case['strategy']}: {_reason(profiled[key])}"
        for case, key in zip(shown, keys, strict=True)
        if key in profiled
    ]
    rows = pd.DataFrame(
        [
            {
                "workload": case["workload_label"],
                "strategy": case["strategy"],
                **_time_cells(case, floors),
                "trial": profiled.get(key),
            }
            for case, key in zip(shown, keys, strict=True)
        ]
    )
    notes = [f"The {_SLOWEST} slowest of {len(compiled)}."] if len(compiled) > _SLOWEST else []
    if len(reasons) < len(shown):
        notes.append("compilewatch run --profile tells why.")
    title = f"{units.plural(len(compiled), 'compiled case')} measured below eager, speedup under 1"
    alt = "Compiled cases measured below eager, with latencies and speedup"
    return (
        *parts.table("overview-slowest", alt, rows, _SLOW, title=title, note=" ".join(notes)),
        *parts.listed("Why they are slower", reasons),
    )


def _reason(trial_id: str) -> str:
    trial = read_trial(trial_id)
    return why(trial.profile, step_times(trial)) if trial.profile else ""


def _is_compiled(case: Mapping[str, Any]) -> bool:
    return bool(case["strategy"] != EAGER.name and not pd.isna(case["speedup"]))


def _time_cells(case: Mapping[str, Any], floors: Sequence[NoiseFloor]) -> dict[str, Any]:
    return {
        **row_of(case, names={**_TIMES, **RATES}),
        **case_facts(case, floors),
    }


def table(
    cases: pd.DataFrame, points: pd.DataFrame, floors: Sequence[NoiseFloor], comparison: Comparison | None
) -> Table:
    """Every workload of `cases` as a row, what got worse first; `points` are the runs from which the history
    comes, `comparison` has what changed since the base.
    """
    rows = _rows(cases, points, floors, comparison)
    histories, reach = sparklines.relative(rows["history"])
    return Table(
        "overview-table",
        "Every workload with its fastest strategy, its speedup, its change and its history",
        rows.assign(history=histories),
        _WORKLOADS | {"history": TableColumn("Speedup, run by run", kind="history", reach=reach)},
    )


def _rows(
    cases: pd.DataFrame, points: pd.DataFrame, floors: Sequence[NoiseFloor], comparison: Comparison | None
) -> pd.DataFrame:
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
    changes = _largest_changes(comparison)
    places = {workload_id: place for place, workload_id in enumerate(changes)}
    labels = sorted(
        by_workload, key=lambda label: places.get(by_workload[label][0]["workload_id"], len(places))
    )
    return pd.DataFrame([_row(label, by_workload[label], history, floors, changes) for label in labels])


def _largest_changes(comparison: Comparison | None) -> dict[str, Row]:
    """By workload the latency of the case that got worst, else of that which changed most; so ordered."""
    rows = [row for row in comparison.rows if row.metric is Metric.LATENCY] if comparison else []
    changes: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: (row.verdict is not Verdict.REGRESSED, -abs(row.change or 0.0))):
        changes.setdefault(row.case.workload_id, row)
    return changes


def _row(
    label: str,
    cases: list[dict[str, Any]],
    history: dict[tuple[Any, ...], list[float]],
    floors: Sequence[NoiseFloor],
    changes: Mapping[str, Row],
) -> dict[str, Any]:
    failing = sum(1 for case in cases if case["failed_trials"] > 0)
    compiled = list(filter(_is_compiled, cases))
    changed = changes.get(cases[0]["workload_id"])
    row: dict[str, Any] = {
        "workload": label,
        "task": cases[0]["task"],
        "change": changed.change if changed else None,
        "verdict": f"{row_verdict(changed)}, {changed.strategy}" if changed else units.MISSING,
    }
    if not compiled:
        eager = next((case for case in cases if case["strategy"] == EAGER.name), None)
        return row | {
            "state": f"{failing} failing" if failing else "eager only",
            # Of what never passed nothing is fastest.
            "fastest": EAGER.name if eager and not pd.isna(eager["latency_ns"]) else units.MISSING,
            **dict.fromkeys(("strategy", "pays_off"), units.MISSING),
            **dict.fromkeys(("latency", "speedup", "interval", "steps")),
            "eager": eager["latency_ns"] if eager else None,
            **row_of(eager or cases[0], names=RATES),
            "rate": None,
            "eager_rate": eager["throughput_per_s"] if eager else None,
            **case_facts(eager or {**cases[0], "counted_trials": None}, floors),
            "history": [],
        }
    found = fastest(cases)
    best = found.case or max(compiled, key=lambda case: float(case["speedup"]))
    # Of the case whose change the row tells: the fastest may be measured for the first time.
    of_change = history.get(changed.case.ids) if changed else None
    return row | {
        "state": f"{failing} failing" if failing else "ok",
        "fastest": NO_DIFFERENCE if found.rivals else found.strategy,
        "strategy": best["strategy"],
        **_time_cells(best, floors),
        **row_of(best, names=BREAK_EVEN),
        "history": (of_change or history.get((best["workload_id"], best["strategy_id"]), []))[-_HISTORY:],
    }
