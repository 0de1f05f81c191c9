"""The figures at the top of the Overview: geometric means on matched sets, coverage, and the build before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from dashboard import shaping, theme
from db.metrics.eligibility import LeftOut
from db.metrics.geomean import geomean, matched_geomeans
from db.records import Task

CASE = ["workload_id", "strategy_id"]
NOW, BEFORE = "this build", "the build before"
# Of the ninety columns of cases those that a mean needs: rows are chosen over and over here.
_OF_CASES = [
    *("task", "machine_id", "workload_id", "workload", "strategy_id", "strategy", "strategy_kind"),
    *("status", "failure_kind", "nothing_compiled", "speedup"),
]


@dataclass(frozen=True)
class Headline:
    """Geometric mean speedup of one task with one strategy, on the cases that passed with both builds.

    `before` and `change` are None where there is no build before; `history` is a mean per run, oldest first.
    """

    task: Task
    strategy: str
    now: float | None
    before: float | None
    cases: int
    left_out: tuple[LeftOut, ...]
    history: tuple[float, ...]

    @property
    def change(self) -> float | None:
        """As a share of what it was before; None where one of the two is unknown."""
        return self.now / self.before - 1 if self.now and self.before else None


@dataclass(frozen=True)
class Coverage:
    """How many compiled cases have a speedup, out of those measured with this build or the one before."""

    compared: int
    wanted: int
    missing: tuple[str, ...]


def build_before(points: pd.DataFrame, build_id: str) -> str | None:
    """The build measured last before `build_id` that shares a case with it. `points`: one machine's runs."""
    points = points[[*CASE, "build_id", "last_started_at"]]
    mine = points[points["build_id"] == build_id]
    if mine.empty:
        return None
    older = points[
        (points["last_started_at"] < mine["last_started_at"].min()) & (points["build_id"] != build_id)
    ]
    shared = older.merge(mine[CASE].drop_duplicates(), on=CASE)
    return None if shared.empty else str(shared.loc[shared["last_started_at"].idxmax(), "build_id"])


def _leading_strategy(cases: pd.DataFrame) -> str | None:
    """The compiled strategy with the most cases that have a speedup; the earlier in order among equals."""
    compiled = cases[(cases["strategy"] != "eager") & cases["speedup"].notna()]
    counts = compiled["strategy"].value_counts()
    best = [name for name in theme.ordered(counts.index) if counts[name] == counts.max()]
    return best[0] if best else None


def headlines(now: pd.DataFrame, before: pd.DataFrame, points: pd.DataFrame) -> list[Headline]:
    """One per task that was measured, each with its leading strategy."""
    found = []
    now, before = now[_OF_CASES], before[_OF_CASES]
    points = points[["run_id", "workload_id", "task", "strategy", "speedup"]]
    for task in Task:
        mine = now[now["task"] == task.value]
        strategy = _leading_strategy(mine)
        if strategy is None:
            continue
        sides = {NOW: mine[mine["strategy"] == strategy]}
        if not before.empty:
            sides[BEFORE] = before[(before["task"] == task.value) & (before["strategy"] == strategy)]
        means = matched_geomeans(sides)
        if means.matched_cases == 0:
            sides.pop(BEFORE, None)
            means = matched_geomeans(sides)
        other = means.sides.get(BEFORE)
        history = _history(points[(points["task"] == task.value) & (points["strategy"] == strategy)])
        found.append(
            Headline(
                task,
                strategy,
                means.sides[NOW].matched,
                other.matched if other else None,
                means.matched_cases,
                means.left_out,
                history,
            )
        )
    return found


def _history(points: pd.DataFrame) -> tuple[float, ...]:
    """Mean per run over the workloads of the newest run; runs that lack one of them are left out."""
    by_run: dict[str, dict[str, float]] = {}
    usable = points[points["speedup"].notna()]
    # In plain lists: a pivoted frame costs ten times as much.
    columns = (usable[name].tolist() for name in ("run_id", "workload_id", "speedup"))
    for run_id, workload_id, speedup in zip(*columns, strict=True):
        by_run.setdefault(run_id, {})[workload_id] = float(speedup)
    *_, newest = by_run.values() or [{}]
    whole = [run for run in by_run.values() if newest.keys() <= run.keys()]
    means = (geomean(run[workload_id] for workload_id in newest) for run in whole[-60:])
    return tuple(mean for mean in means if mean is not None)


def coverage(now: pd.DataFrame, before: pd.DataFrame) -> Coverage:
    """Of the cases of a build, `now`, against those of the build `before` it."""
    columns = [*CASE, "workload_label", "strategy", "speedup"]
    compiled = now.loc[now["strategy"] != "eager", columns]
    earlier = before.loc[before["strategy"] != "eager", columns]
    have = set(zip(compiled["workload_id"], compiled["strategy_id"], strict=True))
    gone = [
        f"{row.workload_label} with {row.strategy}: measured with the build before, not with this one"
        for row in earlier.itertuples()
        if (row.workload_id, row.strategy_id) not in have
    ]
    return Coverage(int(compiled["speedup"].notna().sum()), len(compiled) + len(gone), tuple(gone))


def by_strategy(cases: pd.DataFrame) -> pd.DataFrame:
    """Geometric mean per task and strategy over the workloads that passed with every strategy of the task."""
    rows = []
    cases = cases[_OF_CASES]
    for task in Task:
        mine = cases[cases["task"] == task.value]
        names: Sequence[str] = [name for name in theme.ordered(mine["strategy"]) if name != "eager"]
        if not names:
            continue
        means = matched_geomeans(
            {name: mine[mine["strategy"] == name] for name in names}, on=("workload_id",)
        )
        rows += [
            {
                "task": task.value,
                "strategy": name,
                "matched": means.sides[name].matched,
                "matched_cases": means.matched_cases,
                "naive": means.sides[name].naive,
                "naive_cases": means.sides[name].naive_cases,
                "left_out": shaping.joined(
                    f"{case.workload} ({case.reason})" for case in means.left_out if case.side == name
                ),
            }
            for name in names
        ]
    return pd.DataFrame(rows)
