"""The figures at the top of the Overview: geometric means on matched sets, coverage, and the build before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
import pandas as pd

from dashboard.render import theme
from db.metrics.eligibility import LeftOut
from db.metrics.geomean import NEEDED, CaseRow, geomean, geomeans_of_rows
from db.metrics.groups import equal_to, floats, row_dicts
from db.records.strategies import EAGER
from db.records.trial import Task
from db.wording import units

CASE = ["workload_id", "strategy_id"]
NOW, BEFORE = "this build", "the build before"
# Of the ninety columns of cases those that a mean needs.
_OF_CASES = ["task", *CASE, *NEEDED, "speedup"]
_OF_COVERAGE = [*CASE, "workload_label", "strategy", "speedup"]


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
    mine = equal_to(points["build_id"], build_id)
    if not mine.any():
        return None
    last = points["last_started_at"].to_numpy(dtype="datetime64[us]").astype(np.int64)
    older = np.flatnonzero((last < last[mine].min()) & ~mine)
    newest_first = older[np.argsort(-last[older], kind="stable")]
    cases = list(zip(*(points[name].tolist() for name in CASE), strict=True))
    my_cases = set(compress(cases, mine.tolist()))
    found = next((place for place in newest_first.tolist() if cases[place] in my_cases), None)
    return None if found is None else str(points["build_id"].iloc[found])


def _leading_strategy(cases: Iterable[CaseRow]) -> str | None:
    """The compiled strategy with the most cases that have a speedup; the earlier in order among equals."""
    counts = Counter(
        case["strategy"] for case in cases if case["strategy"] != EAGER.name and not pd.isna(case["speedup"])
    )
    return max(theme.ordered(counts), key=counts.__getitem__, default=None)


def headlines(now: pd.DataFrame, before: pd.DataFrame, points: pd.DataFrame) -> list[Headline]:
    """One per task that was measured, each with its leading strategy."""
    found = []
    of_now, of_before = (row_dicts(cases[_OF_CASES]) for cases in (now, before))
    for task in Task:
        mine = [case for case in of_now if case["task"] == task.value]
        strategy = _leading_strategy(mine)
        if strategy is None:
            continue
        key = (task.value, strategy)
        sides = {NOW: [case for case in mine if case["strategy"] == strategy]}
        if of_before:
            sides[BEFORE] = [case for case in of_before if (case["task"], case["strategy"]) == key]
        means = geomeans_of_rows(sides)
        if means.matched_cases == 0:
            sides.pop(BEFORE, None)
            means = geomeans_of_rows(sides)
        other = means.sides.get(BEFORE)
        found.append(
            Headline(
                task,
                strategy,
                means.sides[NOW].matched,
                other.matched if other else None,
                means.matched_cases,
                means.left_out,
                _history(points, task.value, strategy),
            )
        )
    return found


def sentences(found: Sequence[Headline]) -> list[str]:
    """One sentence that says what each of `found` is a mean of; none where nothing was found."""
    over = [f"{each.task} of {each.strategy} over {units.plural(each.cases, 'case')}" for each in found]
    passed = "that passed with this build and the one before"
    if all(each.before is None for each in found):
        passed = "that passed with this build"
    return [f"Speedups are geometric means: {', '.join(over)} {passed}."] if over else []


def _history(points: pd.DataFrame, task: str, strategy: str) -> tuple[float, ...]:
    """Mean per run over the workloads of the newest run; runs that lack one of them are left out."""
    speedups = floats(points["speedup"])
    places = np.flatnonzero(
        ~np.isnan(speedups) & equal_to(points["task"], task) & equal_to(points["strategy"], strategy)
    )
    ids = (points[name].array.take(places).tolist() for name in ("run_id", "workload_id"))
    by_run: dict[str, dict[str, float]] = {}
    # In plain lists: a pivoted frame costs ten times as much.
    for run_id, workload_id, speedup in zip(*ids, speedups[places].tolist(), strict=True):
        by_run.setdefault(run_id, {})[workload_id] = speedup
    *_, newest = by_run.values() or [{}]
    whole = [run for run in by_run.values() if newest.keys() <= run.keys()]
    means = (geomean(run[workload_id] for workload_id in newest) for run in whole[-60:])
    return tuple(mean for mean in means if mean is not None)


def coverage(now: pd.DataFrame, before: pd.DataFrame) -> Coverage:
    """Of the cases of a build, `now`, against those of the build `before` it."""
    compiled, earlier = (
        [case for case in row_dicts(cases[_OF_COVERAGE]) if case["strategy"] != EAGER.name]
        for cases in (now, before)
    )
    have = {(case["workload_id"], case["strategy_id"]) for case in compiled}
    gone = [
        f"{case['workload_label']} with {case['strategy']}: measured with the build before, not with this one"
        for case in earlier
        if (case["workload_id"], case["strategy_id"]) not in have
    ]
    compared = sum(not pd.isna(case["speedup"]) for case in compiled)
    return Coverage(compared, len(compiled) + len(gone), tuple(gone))


def by_strategy(cases: pd.DataFrame) -> pd.DataFrame:
    """Geometric mean per task and strategy over the workloads that passed with every strategy of the task."""
    rows = []
    every = row_dicts(cases[_OF_CASES])
    for task in Task:
        by_name: dict[str, list[CaseRow]] = {}
        for case in every:
            if case["task"] == task.value and case["strategy"] != EAGER.name:
                by_name.setdefault(case["strategy"], []).append(case)
        names = theme.ordered(by_name)
        if not names:
            continue
        means = geomeans_of_rows({name: by_name[name] for name in names}, on=("workload_id",))
        left_out = _outside(means.left_out)
        rows += [
            {
                "task": task.value,
                "strategy": name,
                "matched": means.sides[name].matched,
                "matched_cases": means.matched_cases,
                "naive": means.sides[name].naive,
                "naive_cases": means.sides[name].naive_cases,
                "left_out": left_out,
            }
            for name in names
        ]
    return pd.DataFrame(rows)


def _outside(left_out: Iterable[LeftOut]) -> str:
    """Every workload outside a matched set of strategies, with the strategies that keep it out and why."""
    found: dict[str, dict[str, list[str]]] = {}
    for case in left_out:
        found.setdefault(case.workload, {}).setdefault(case.reason, []).append(str(case.side))
    told = {
        workload: "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
        for workload, reasons in found.items()
    }
    return ", ".join(f"{workload} ({why})" for workload, why in told.items())
