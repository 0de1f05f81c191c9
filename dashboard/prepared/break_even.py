"""What the page Break-even is drawn from: curves and plan of one workload, and the steps of every one."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dashboard.charts import break_even as charts
from dashboard.data import filters_of, read_cases
from dashboard.links import Link
from dashboard.prepared import break_even_plan
from dashboard.shaping import asides, with_caches, with_strategies
from dashboard.snapshots import Snapshot, remembered
from db import units
from db.metrics.case_modes import mode_options
from db.metrics.frame_rows import row_dicts
from db.metrics.mode_choice import ModeOption, lower_envelope
from db.strategies import EAGER
from db.wording.marks import bound_word


@dataclass(frozen=True)
class Seen:
    """What the page is drawn from: the options of the workload in focus and its curves, if it has any."""

    options: list[ModeOption]
    curves: charts.Curves | None
    finding: str
    plan: pd.DataFrame
    done_first: str
    beside: list[str]
    every_workload: pd.DataFrame


@remembered
def workloads(snapshot: Snapshot, link: Link) -> tuple[list[str], frozenset[str]]:
    """The workloads to choose from, and the cache states that were measured."""
    cases, everything = _cases(snapshot, link), read_cases(snapshot, filters_of(link))
    return sorted(set(cases["workload_label"])), frozenset(map(str, everything["cache"]))


def _cases(snapshot: Snapshot, link: Link) -> pd.DataFrame:
    return with_caches(with_strategies(read_cases(snapshot, filters_of(link)), link.strategy), link.cache)


@remembered
def seen(snapshot: Snapshot, link: Link, focus: str) -> Seen:
    cases = _cases(snapshot, link)
    mine = cases[cases["workload_label"] == focus]
    options, left_out = mode_options(mine)
    no_line = [f"{case.workload} with {case.strategy} has no line: {case.reason}" for case in left_out]
    columns = (mine[name].tolist() for name in ("strategy", "break_even", "break_even_steps"))
    steps = {strategy: int(count) for strategy, kind, count in zip(*columns, strict=True) if kind == "steps"}
    drawable = len(options) > 1
    return Seen(
        options=options,
        curves=charts.curves(options, steps, steps=link.steps, restarts=0, log=link.scale == "log")
        if drawable
        else None,
        finding=charts.finding(mine, focus),
        plan=break_even_plan.rows(link, mine, options),
        done_first=_done_first(options) if drawable else "",
        beside=list(dict.fromkeys([*_reasons(mine), *no_line, *map(str, asides(mine))])),
        every_workload=_every_workload(cases),
    )


def right_of_the_edge(found: charts.Curves, steps: int) -> list[str]:
    """What lies beyond the last step of the chart: crossings with eager, and the plan of `steps`."""
    said = []
    if found.beyond:
        said.append(f"Crossing beyond the right edge: {', '.join(found.beyond)}. The log scale shows it.")
    if steps > found.last_step:
        later = [f"{name} ({units.steps(at)})" for name, at in found.beyond.items() if at > steps]
        passed = f"every crossing with eager{' that is drawn' if later else ''} is passed by then"
        rest = f", not yet that of {', '.join(later)}" if later else ""
        said.append(f"{units.steps(steps)} lie beyond the right edge; {passed}{rest}.")
    return said


def _done_first(options: list[ModeOption]) -> str:
    parts = []
    for part in lower_envelope(options):
        until = "on" if part.last_steps is None else f"to {part.last_steps:,}"
        parts.append(f"{part.strategy} from {part.first_steps:,} {until}")
    return f"Done first, by steps per process: {'; '.join(parts)}."


def _reasons(cases: pd.DataFrame) -> list[str]:
    """Why a case has no break-even."""
    return [
        f"{case['workload_label']} with {case['strategy']}: break-even is {case['break_even']}, "
        f"{case['break_even_reason']}"
        for case in row_dicts(cases[["workload_label", "strategy", "break_even", "break_even_reason"]])
        if case["strategy"] != EAGER.name and case["break_even"] != "steps"
    ]


def _every_workload(cases: pd.DataFrame) -> pd.DataFrame:
    """Break-even in words, a row per workload and a column per strategy; no rows for a single workload."""
    rows: dict[str, dict[str, str]] = {}
    told = cases[["workload_label", "strategy", "break_even", "break_even_steps", "bound"]]
    for case in row_dicts(told):
        if case["strategy"] == EAGER.name:
            continue
        words = ", ".join(filter(None, (break_even_plan.steps_words(case), bound_word(case["bound"]))))
        rows.setdefault(case["workload_label"], {"workload": case["workload_label"]})[case["strategy"]] = (
            words
        )
    return pd.DataFrame([rows[name] for name in sorted(rows)]) if len(rows) > 1 else pd.DataFrame()
