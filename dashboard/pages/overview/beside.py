"""Beside the verdict: whether compiling pays, the first result, what changed in the build, other machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pandas as pd

from compilewatch.dashboard.charts.cold_start import seconds_text
from compilewatch.dashboard.pages.overview.headline import STALE_AFTER
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cold_start import mean_starts
from compilewatch.dashboard.parts.parts import Pairs, Part, TableColumn
from compilewatch.dashboard.read.choices import Choices
from compilewatch.dashboard.read.database import in_force
from compilewatch.dashboard.read.shaping import Change, build_changes, confounded
from compilewatch.dashboard.verdicts import inbox
from compilewatch.dashboard.verdicts.context import last_run
from compilewatch.db import units
from compilewatch.db.judge.sentences import target_text
from compilewatch.db.judge.targets import check_cases
from compilewatch.db.metrics.case_modes import fastest
from compilewatch.db.metrics.geomean import NEEDED, CaseRow, geomean
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Status, Task
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.service.regressions import RegressionState

_MOST_NAMED = 3
_LEAST_CHANGE = 5e-4
"""A smaller change is said to be none."""
# Of the ninety columns of cases those that are looked at.
_OF_CASES = [
    *("task", "workload_id", "workload_label", "strategy_id", "strategy_kind", "cache", *NEEDED),
    *("speedup", "speedup_low", "speedup_high", "first_look"),
]
_ALWAYS = ("torch", "cuda", "triton", "driver")
"""Parts of a build that are listed whether they changed or not, where the build has them."""
_MACHINES = {
    "machine": replace(parts.MACHINE, title="Machine"),
    "verdict": TableColumn("Inbox", toned=True),
    "age": TableColumn("Last result"),
}


@dataclass(frozen=True)
class TaskMean:
    """Geometric mean speedup over the models of a task, each with its fastest strategy, eager among them.

    `change` is that of the mean over the `matched` models, as a share of what it was with the build before,
    on cases that passed with both; None where there is none.
    """

    task: Task
    now: float
    models: int
    change: float | None
    matched: int


def pays(now: pd.DataFrame, before: pd.DataFrame, since: str | None) -> tuple[Part, ...]:
    """What compiling gains with the fastest strategy of each model, by task, with how that moved since the
    build called `since`, and where it loses.
    """
    means = means_by_task(now, before)
    pairs = {f"{mean.task.value}, {units.plural(mean.models, 'model')}": _mean_text(mean) for mean in means}
    if not pairs:
        return ()
    slower, compared = _slower_than_eager(now)
    pairs["slower than eager"] = (
        f"{units.count(len(slower))} of {units.count(compared)}: {units.first_of(slower, _MOST_NAMED)}"
        if slower
        else f"none of {units.count(compared)} shown to be"
    )
    moved = since and any(mean.change is not None for mean in means)
    note = "Geometric means, with their change since the base." if moved else "Geometric means."
    return (Pairs("Does compiling pay, fastest strategy each", pairs, note, key="overview-pays"),)


def _mean_text(mean: TaskMean) -> str:
    if mean.change is None:
        return units.ratio(mean.now)
    far = units.percent(mean.change, signed=True) if abs(mean.change) >= _LEAST_CHANGE else "no change"
    over = f" on {units.count(mean.matched)}" if mean.matched != mean.models else ""
    return f"{units.ratio(mean.now)}, {far}{over}"


def means_by_task(now: pd.DataFrame, before: pd.DataFrame) -> list[TaskMean]:
    """One per task of which a compiled case has a speedup."""
    of_now, of_before = (_compiled(cases) for cases in (now, before))
    by_task = []
    for task in Task:
        mine = [case for case in of_now if case["task"] == task.value]
        speedups = _fastest(mine)
        mean = geomean(speedups.values())
        if mean is not None:
            by_task.append(TaskMean(task, mean, len(speedups), *_change(mine, of_before)))
    return by_task


def _compiled(cases: pd.DataFrame) -> list[CaseRow]:
    rows = row_dicts(cases[_OF_CASES]) if len(cases) else []
    return [row for row in rows if row["strategy"] != EAGER.name and not pd.isna(row["speedup"])]


def _fastest(cases: Iterable[CaseRow]) -> dict[str, float]:
    """The speedup of each model with its fastest strategy; eager, which is 1, is one of them."""
    speedups: dict[str, float] = {}
    for case in cases:
        key = str(case["workload_id"])
        speedups[key] = max(speedups.get(key, 1.0), float(case["speedup"]))
    return speedups


def _change(now: Sequence[CaseRow], before: Sequence[CaseRow]) -> tuple[float | None, int]:
    """How the mean of the fastest changed on the cases that passed on both sides, and their models."""
    sides = [
        {_key(case): case for case in side if case["status"] == Status.OK.value} for side in (now, before)
    ]
    both = sides[0].keys() & sides[1].keys()
    if not both:
        return None, 0
    fastest_of = [_fastest(side[key] for key in both) for side in sides]
    means = [geomean(side.values()) or 1.0 for side in fastest_of]
    return means[0] / means[1] - 1, len(fastest_of[0])


def _key(case: Mapping[str, object]) -> tuple[str, str]:
    return str(case["workload_id"]), str(case["strategy_id"])


def _slower_than_eager(now: pd.DataFrame) -> tuple[list[str], int]:
    """The models on which eager is shown to be the fastest, and how many have a compiled case to compare."""
    by_model: dict[str, list[dict[str, Any]]] = {}
    for case in row_dicts(now[_OF_CASES]):
        by_model.setdefault(str(case["workload_label"]), []).append(case)
    found = {model: fastest(cases) for model, cases in by_model.items()}
    compared = {model: each for model, each in found.items() if each.compared}
    return [model for model, each in compared.items() if each.case is None and not each.rivals], len(compared)


def targets(now: pd.DataFrame) -> tuple[Part, ...]:
    """How many limits of `[[target]]` the cases meet, and which they miss; nothing where none fits a case."""
    checks = check_cases(now, in_force().target)
    if not checks:
        return ()
    missed: dict[str, list[str]] = {}
    for check in checks:
        if check.met is False:
            missed.setdefault(f"{check.workload} / {check.strategy}", []).append(target_text(check))
    met, unknown = (sum(check.met is state for check in checks) for state in (True, None))
    aside = f", {units.count(unknown)} unknown" if unknown else ""
    pairs = {"met": f"{units.count(met)} of {units.count(len(checks))}{aside}"}
    pairs |= {case: "; ".join(texts) for case, texts in list(missed.items())[:_MOST_NAMED]}
    more = len(missed) - _MOST_NAMED
    note = f"{units.plural(more, 'more case')} too; `compilewatch gate` names all." if more > 0 else ""
    return (Pairs("Targets", pairs, note, key="overview-targets"),)


def first_result(now: pd.DataFrame) -> tuple[Part, ...]:
    """What a process takes to its first result, with an empty cache and with a filled one, and eager."""
    starts = mean_starts(now)
    eager = now.loc[now["strategy"] == EAGER.name, "time_to_first_result_ns"].dropna()
    known = {
        "cold": starts.cold_ns,
        "warm": starts.filled_ns,
        "eager": geomean(eager.astype(float)),
    }
    if starts.cold_ns is None:
        return ()
    pairs = {name: seconds_text(ns) for name, ns in known.items() if ns is not None}
    return (Pairs("First result after a start", pairs, key="overview-starts"),)


def changed(choices: Choices, base: str | None, head: str | None) -> tuple[Part, ...]:
    """The parts of the build that moved since the build before, and of the usual ones those that did not."""
    if base is None or head is None:
        return ()
    before, after = (choices.build_rows[build] for build in (base, head))
    changes = build_changes(before, after)
    named = {each.component for each in changes}
    # Another release of torch is another commit of it anyway.
    changes = [each for each in changes if each.component != "torch git" or "torch" not in named]
    same = [
        name for name in _ALWAYS if name not in named and after.get(name) and before.get(name) == after[name]
    ]
    pairs = {each.component: _step(each) for each in changes}
    if same:
        pairs[", ".join(same)] = "same"
    if not changes:
        pairs["settings, packages or sources"] = "differ"
    note = "Several at once: their effects cannot be told apart." if confounded(changes) else ""
    return (Pairs("What changed under you", pairs, note, key="overview-build"),)


def _step(change: Change) -> str:
    return f"{change.before or units.MISSING} → {change.after or units.MISSING}"


def other_machines(
    machine: str | None, choices: Choices, recorded: Sequence[RegressionState], now: datetime
) -> tuple[Part, ...]:
    """The other machines with what waits in the inbox of each, what failed in its last run, and how old their
    newest result is.
    """
    rows, tones = [], []
    for each in choices.newest_machines:
        newest = choices.newest_results.get(each)
        if each == machine or newest is None:
            continue
        words, tone = _of_machine([state for state in recorded if state.regression.machine_id == each])
        run = last_run(each)
        if run and (failed := int(run["failed_trials"])):
            words, tone = f"{words}, {units.plural(failed, 'trial')} failed", Verdict.REGRESSED.value
        rows.append(
            {
                "machine": choices.machine_names[each],
                "machine_id": each,
                "verdict": words,
                "age": _age(newest, now),
            }
        )
        tones.append(tone)
    table = parts.table(
        "overview-machines",
        "The other machines, what waits in the inbox of each, and the age of its newest result",
        pd.DataFrame(rows),
        _MACHINES,
        tones=tuple(tones),
        few=True,
    )
    return (parts.titled("Other machines", *table),) if table else ()


def _of_machine(recorded: Sequence[RegressionState]) -> tuple[str, str]:
    """How many models are slower by what is open there; else how many changes of other metrics are."""
    waiting = [each for each in recorded if each.is_open]
    slower = {
        each.regression.row.workload for each in waiting if each.regression.row.metric is Metric.LATENCY
    }
    if slower:
        return f"{units.count(len(slower))} slower", "regressed"
    if waiting:
        return units.plural(len(inbox.changes(waiting)), "open change"), "regressed"
    return "nothing open", ""


def _age(newest: datetime, now: datetime) -> str:
    age = now - newest
    if age > STALE_AFTER:
        return f"stale, {units.plural(age.days, 'day')}"
    return f"{newest:%H:%M} UTC" if age.days < 1 else f"{newest:%m-%d %H:%M}"
