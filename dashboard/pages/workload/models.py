"""All models in a table: the strategy to take, its gain, when it pays, its cold start, its last weeks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import COLUMNS as FIGURES
from compilewatch.dashboard.parts.cases import NO_DIFFERENCE, case_row, floors_of
from compilewatch.dashboard.parts.cold_start import largest_phases
from compilewatch.dashboard.parts.model import leading, pays, warm_ns
from compilewatch.dashboard.parts.parts import LEFT_OUT, Folded, Lines, PageHeadline, Part, TableColumn
from compilewatch.dashboard.parts.speedups import speedups_chart
from compilewatch.dashboard.parts.weeks import WEEKS, last_weeks
from compilewatch.dashboard.read.shaping import asides
from compilewatch.db import units
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from compilewatch.db.metrics.case_modes import Fastest, fastest
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.identity import version_key
from compilewatch.db.records.strategies import EAGER

_SHOWN = ("speedup", "interval", "pays", "cold", "warm", "phase", "memory", "weeks")
_COLUMNS = {
    "workload": replace(parts.WORKLOAD, title="Model"),
    "best": TableColumn(
        "Best strategy", explained="Whose interval clears all others, eager among them. Figures are of it."
    ),
    "speedup": FIGURES["speedup"],
    "interval": FIGURES["interval"],
    "pays": TableColumn("Break-even", numeric=True, explained="In steps, with its 95 % interval."),
    **parts.quantities("ns", {"cold": "Cold", "warm": "Warm"}),
    "phase": TableColumn("Largest phase", explained="Of the cold start, from process to first result."),
    "memory": FIGURES["memory"],
    "weeks": TableColumn(
        f"{WEEKS} weeks",
        "line",
        explained="Latency, each on a scale of its own; builds where they took turns.",
    ),
    **parts.hidden(
        {
            "task": TableColumn("Task"),
            "strategy": TableColumn("Strategy of the figures"),
            "state": TableColumn("State"),
            **{
                name: column
                for name, column in FIGURES.items()
                if name not in ("workload", "strategy", "first", "steps", "pays_off", "status", *_SHOWN)
            },
        }
    ),
}


def models(link: Link, cases: pd.DataFrame) -> tuple[Part, ...]:
    """The list of the workloads of `cases`, which are those that `link` lets through."""
    by_model: dict[str, list[dict[str, Any]]] = {}
    for case in row_dicts(cases):
        by_model.setdefault(case["workload_label"], []).append(case)
    found = {label: fastest(rows) for label, rows in by_model.items()}
    chosen = {label: leading(rows, found[label]) for label, rows in by_model.items()}
    shown = list(chosen.values())
    phases = largest_phases(link, cases)
    newest = max(case["last_started_at"] for case in shown)
    weeks = last_weeks(link, {_ids(case): case["strategy"] for case in shown}, newest)
    floors = floors_of(link.machine)
    rows = [
        _row(by_model[label], found[label], chosen[label], floors)
        | {"phase": phases.get(_key(chosen[label]), units.MISSING), "weeks": weeks[_ids(chosen[label])]}
        for label in sorted(by_model, key=version_key)
    ]
    frame = pd.DataFrame(rows)
    left_out = [str(aside) for aside in asides(cases)]
    return (
        _headline(by_model, found),
        *parts.table(
            "models",
            "Every model with its best strategy, speedup, break-even, cold start, memory and last weeks",
            frame,
            parts.informative(_COLUMNS, frame),
        ),
        speedups_chart(cases, "models-speedups"),
        *_folded(left_out),
    )


def _folded(lines: Sequence[str]) -> tuple[Part, ...]:
    if not lines:
        return ()
    title = f"{LEFT_OUT} ({units.count(len(lines))})"
    return (Folded(title, lambda: (Lines(tuple(lines)),), "left-out"),)


def _key(case: Mapping[str, Any]) -> tuple[str, str, str]:
    return case["workload_label"], case["strategy"], str(case["cache"])


def _ids(case: Mapping[str, Any]) -> tuple[str, str]:
    return case["workload_id"], case["strategy_id"]


def _row(
    rows: Sequence[dict[str, Any]], found: Fastest, case: dict[str, Any], floors: Sequence[NoiseFloor]
) -> dict[str, Any]:
    cells = case_row(case, floors)
    failing = sum(1 for row in rows if row["failed_trials"])
    return {
        **cells,
        "task": case["task"],
        "best": _best(found, case),
        "pays": pays(case),
        "cold": cells["first"],
        "warm": warm_ns(rows, case),
        "state": f"{failing} failing" if failing else "ok",
    }


def _best(found: Fastest, case: Mapping[str, Any]) -> str:
    if found.rivals:
        return NO_DIFFERENCE
    # Of what never passed nothing is best.
    return units.MISSING if not found.compared and pd.isna(case["latency_ns"]) else found.strategy


def _headline(by_model: Mapping[str, Sequence[dict[str, Any]]], found: Mapping[str, Fastest]) -> PageHeadline:
    """On how many models compiled code is shown to be faster than eager, and where it gains most."""
    every = units.plural(len(by_model), "model")
    if not any(each.compared for each in found.values()):
        return PageHeadline(f"No compiled case of {every} has a speedup")
    faster = {
        label: each.case
        for label, each in found.items()
        if each.case is not None and EAGER.name not in each.rivals
    }
    if not faster:
        return PageHeadline(f"No compiled strategy is shown to be faster than eager on {every}", "warning")
    label, most = max(faster.items(), key=lambda item: float(item[1]["speedup"]))
    share = f"{units.count(len(faster))} of {every}"
    top = f"{units.ratio(most['speedup'])} on {label} with {most['strategy']}"
    return PageHeadline(f"Compiled is shown to be faster on {share}, at most {top}", "good")
