"""The means at the top of the Overview, the coverage, and every strategy on matched sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.parts import Part, TableColumn
from compilewatch.db import units
from compilewatch.db.metrics.eligibility import Excluded
from compilewatch.db.metrics.geomean import BOUNDED, NEEDED, CaseRow, geomean, geomeans_by_strategy
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Status, Task

CASE = ["workload_id", "strategy_id"]
# Of the ninety columns of cases those that a mean needs.
_OF_CASES = ["task", *CASE, *NEEDED, "speedup", *BOUNDED]
_OF_COVERAGE = [*CASE, "workload_label", "strategy", "speedup"]

_MEANS = {
    "task": TableColumn("Task"),
    "strategy": TableColumn("Strategy"),
    **parts.numbers({"matched": "Matched set (cases)", "naive": "Own set (cases)"}),
    "left_out": TableColumn("Left out of the matched set", wide=True),
}


@dataclass(frozen=True)
class TaskMean:
    """Geometric mean speedup over the workloads of a task, each with its fastest strategy, eager among them.

    `change` is that of the mean over the `matched` workloads, as a share of what it was with the build
    before, on cases that passed with both; None where there is none.
    """

    task: Task
    now: float
    workloads: int
    change: float | None
    matched: int


@dataclass(frozen=True)
class Coverage:
    """How many compiled cases have a speedup, out of those measured with this build or the one before."""

    compared: int
    wanted: int
    missing: tuple[str, ...]


def headlines(now: pd.DataFrame, before: pd.DataFrame) -> list[TaskMean]:
    """One per task of which a compiled case has a speedup."""
    of_now, of_before = (_compiled(cases) for cases in (now, before))
    by_task = []
    for task in Task:
        mine = [case for case in of_now if case["task"] == task.value]
        fastest = _fastest(mine)
        mean = geomean(fastest.values())
        if mean is None:
            continue
        change, matched = _change(mine, of_before)
        by_task.append(TaskMean(task, mean, len(fastest), change, matched))
    return by_task


def _compiled(cases: pd.DataFrame) -> list[CaseRow]:
    rows = row_dicts(cases[_OF_CASES]) if len(cases) else []
    return [row for row in rows if row["strategy"] != EAGER.name and not pd.isna(row["speedup"])]


def _fastest(cases: Iterable[CaseRow]) -> dict[str, float]:
    """The speedup of each workload with its fastest strategy; eager, which is 1, is one of them."""
    speedups: dict[str, float] = {}
    for case in cases:
        key = str(case["workload_id"])
        speedups[key] = max(speedups.get(key, 1.0), float(case["speedup"]))
    return speedups


def _change(now: Sequence[CaseRow], before: Sequence[CaseRow]) -> tuple[float | None, int]:
    """How the mean of the fastest changed on the cases that passed on both sides, and their workloads."""
    sides = [
        {_key(case): case for case in side if case["status"] == Status.OK.value} for side in (now, before)
    ]
    both = sides[0].keys() & sides[1].keys()
    if not both:
        return None, 0
    fastest = [_fastest(side[key] for key in both) for side in sides]
    means = [geomean(side.values()) or 1.0 for side in fastest]
    return means[0] / means[1] - 1, len(fastest[0])


def _key(case: Mapping[str, object]) -> tuple[str, str]:
    return str(case["workload_id"]), str(case["strategy_id"])


def coverage(now: pd.DataFrame, before: pd.DataFrame) -> Coverage:
    """Of the cases of a build, `now`, against those of the build `before` it."""
    compiled, earlier = (
        [case for case in row_dicts(cases[_OF_COVERAGE]) if case["strategy"] != EAGER.name]
        for cases in (now, before)
    )
    have = {_key(case) for case in compiled}
    missing = [
        f"{case['workload_label']} with {case['strategy']}: measured with the build before, not with this one"
        for case in earlier
        if _key(case) not in have
    ]
    compared = sum(not pd.isna(case["speedup"]) for case in compiled)
    return Coverage(compared, len(compiled) + len(missing), tuple(missing))


def by_strategy(cases: pd.DataFrame) -> pd.DataFrame:
    """Geometric mean per task and strategy over the workloads that passed with every strategy of the task."""
    rows = [
        {
            "task": task,
            "strategy": name,
            "matched": mean.matched,
            "matched_interval": mean.matched_interval,
            "matched_cases": means.matched_cases,
            "naive": mean.naive,
            "naive_interval": mean.naive_interval,
            "naive_cases": mean.naive_cases,
            "left_out": _outside(means.left_out),
        }
        for task, means in geomeans_by_strategy(row_dicts(cases[_OF_CASES]))
        for name, mean in means.sides.items()
    ]
    return pd.DataFrame(rows)


def _outside(left_out: Iterable[Excluded]) -> str:
    """Every workload outside a matched set of strategies, with the strategies that keep it out and why."""
    sides_by_reason: dict[str, dict[str, list[str]]] = {}
    for case in left_out:
        sides_by_reason.setdefault(case.workload, {}).setdefault(case.reason, []).append(str(case.side))
    reasons_of = {
        workload: "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
        for workload, reasons in sides_by_reason.items()
    }
    return ", ".join(f"{workload} ({why})" for workload, why in reasons_of.items())


def strategy_means(cases: pd.DataFrame) -> tuple[Part, ...]:
    """`by_strategy` as a table; nothing where no compiled case has a speedup."""
    means = by_strategy(cases)
    if means.empty:
        return ()
    texts: dict[str, Any] = {
        name: [
            f"{_mean_text(mean, ends)} ({units.count(n)})" if n else units.MISSING
            for mean, ends, n in zip(
                *(means[column] for column in (name, f"{name}_interval", f"{name}_cases")), strict=True
            )
        ]
        for name in ("matched", "naive")
    }
    frame = means.assign(**texts, left_out=means["left_out"].replace({"": "none"}))
    note = (
        "Matched: workloads that passed with every strategy of the task. Own set: whatever each strategy "
        "passed; it rises when slow cases fail. In brackets the 95 % interval over the trials of these cases."
    )
    alt = "Geometric mean speedup per task and strategy, on the matched set and on each strategy's own set"
    title = "Geometric mean speedup by strategy"
    return parts.table("overview-geomeans", alt, frame, _MEANS, title=title, note=note)


def _mean_text(mean: float, ends: tuple[float, float] | None) -> str:
    bounds = f" [{units.interval(*ends, units.ratio)}]" if ends else ""
    return f"{units.ratio(mean)}{bounds}"
