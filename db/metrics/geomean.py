"""Geometric mean speedup over the matched set, beside the naive one, with who was left out and why.

A mean over whatever passed rises when slow cases fail. The matched set holds the cases that passed on every
side: status ok, something compiled, and a value. The naive mean takes each side's own set of values. An
interval holds the noise of the trials of these workloads, and says nothing of others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from compilewatch.db.columns.case import MIXED
from compilewatch.db.errors import UnitError
from compilewatch.db.metrics.eligibility import Excluded, exclusion_reason, require_same
from compilewatch.db.metrics.groups import FEWEST_TRIALS, row_dicts, t_quantile
from compilewatch.db.records.strategies import sort_key
from compilewatch.db.records.trial import StrategyKind, Task
from compilewatch.db.units import words

CASE = ("workload_id", "strategy_id")
# What says whether a case takes part, where it ran, and what to call it.
NEEDED = (
    *("machine_id", "workload", "strategy", "strategy_kind"),
    *("status", "failure_kind", "nothing_compiled"),
)
BOUNDED = ("speedup_low", "speedup_high", "counted_trials")
"""What the interval of a mean is made of; without them there is none."""
CaseRow = Mapping[str, Any]
"""A row of `summarize_cases` by column."""


Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class SideMean:
    """Geometric means of one side: over the matched set and over its own set; None over no cases.

    `matched_interval` and `naive_interval` are the 95 % intervals, None where a case has none.
    """

    matched: float | None
    naive: float | None
    naive_cases: int
    matched_interval: Interval | None = None
    naive_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class MatchedGeomeans:
    """Means by side, how many cases passed on all, and who was left out, once per side that lacks it."""

    sides: dict[str, SideMean]
    matched_cases: int
    left_out: tuple[Excluded, ...]


def geomean(values: Iterable[float]) -> float | None:
    """exp of the mean log; None of no values. Raises UnitError for a value not positive and finite."""
    logs = []
    for value in values:
        if not (math.isfinite(value) and value > 0):
            raise UnitError(f"{value} has no place in a geometric mean.", "Leave out what did not pass.")
        logs.append(math.log(value))
    # fsum is exact, so the order of the values does not matter
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def matched_geomeans(sides: Mapping[str, DataFrame], *, on: tuple[str, ...] = CASE) -> MatchedGeomeans:
    """Geometric means of the speedups per side.

    `sides`: rows of `summarize_cases` by the name of the side, such as two builds (`on` the case) or several
    strategies (`on=("workload_id",)`). Eager cases are the reference and take no part. Raises UnitError where
    the sides mix machines or a side has several rows of the same `on`.
    """
    bounded = [each for each in BOUNDED if all(each in frame for frame in sides.values())]
    needed = dict.fromkeys((*on, "speedup", *NEEDED, *bounded))
    return geomeans_of_rows({name: row_dicts(frame[list(needed)]) for name, frame in sides.items()}, on=on)


def geomeans_of_rows(sides: Mapping[str, Sequence[CaseRow]], *, on: tuple[str, ...]) -> MatchedGeomeans:
    """As `matched_geomeans`, of rows with `on`, `speedup` and the columns `NEEDED`, `BOUNDED` where known."""
    compiled = {
        name: [row for row in rows if row["strategy_kind"] != StrategyKind.EAGER.value]
        for name, rows in sides.items()
    }
    machines = {row["machine_id"] for rows in compiled.values() for row in rows}
    require_same("machine_id", machines, "A geometric mean")
    rows = {name: _by_key(name, mine, on) for name, mine in compiled.items()}
    labels = {key: row for by_key in rows.values() for key, row in by_key.items()}
    left_out, matched = [], []
    for key, label in sorted(labels.items(), key=lambda item: item[0]):
        reasons = {name: _reason(by_key.get(key)) for name, by_key in rows.items()}
        if not any(reasons.values()):
            matched.append(key)
        for side, reason in reasons.items():
            case = rows[side].get(key, label)
            if reason is not None:
                left_out.append(Excluded(str(case["workload"]), str(case["strategy"]), reason, side))
    means = {name: _side_mean(by_key, matched) for name, by_key in rows.items()}
    return MatchedGeomeans(means, len(matched), tuple(left_out))


def geomeans_by_strategy(cases: Iterable[CaseRow]) -> Iterator[tuple[str, MatchedGeomeans]]:
    """By task the means of each compiled strategy, over the workloads that passed with every one of the task.

    `cases` are those of one build on one machine, with `task` beside what `geomeans_of_rows` reads.
    """
    every = list(cases)
    for task in Task:
        by_name: dict[str, list[CaseRow]] = {}
        for case in every:
            if case["task"] == task.value and case["strategy_kind"] != StrategyKind.EAGER.value:
                by_name.setdefault(case["strategy"], []).append(case)
        if by_name:
            sides = {name: by_name[name] for name in sorted(by_name, key=sort_key)}
            yield task.value, geomeans_of_rows(sides, on=("workload_id",))


_Key = tuple[str, ...]


def _by_key(side: str, rows: list[CaseRow], on: tuple[str, ...]) -> dict[_Key, CaseRow]:
    rows_by_key: dict[_Key, CaseRow] = {}
    for row in rows:
        key = tuple(str(row[name]) for name in on)
        if key in rows_by_key:
            raise UnitError(
                f"{side} has several rows for {row['workload']}.", "Choose one build or run a side."
            )
        rows_by_key[key] = row
    return rows_by_key


def _reason(row: CaseRow | None) -> str | None:
    """Why this row is no part of the matched set, or None where it passed."""
    if row is None:
        return "not measured"
    if row["status"] == MIXED:
        return f"failed in some trials: {words(row['failure_kind'])}"
    return exclusion_reason(row, {"speedup": "speedup"})


def _side_mean(rows: dict[_Key, CaseRow], matched: list[_Key]) -> SideMean:
    own = [row for row in rows.values() if not pd.isna(row["speedup"])]
    shared = [rows[key] for key in matched]
    return SideMean(_mean(shared), _mean(own), len(own), _interval(shared), _interval(own))


def _mean(rows: list[CaseRow]) -> float | None:
    return geomean(float(row["speedup"]) for row in rows)


def _interval(rows: list[CaseRow]) -> Interval | None:
    """95 % interval of the geometric mean over `rows`, each with the interval of its own over trials.

    The variances of their mean logarithms add up; Student's t with the degrees of freedom of Welch (1947, The
    generalization of Student's problem, Biometrika 34, 28-35).
    """
    columns = ("speedup", *BOUNDED)
    known = [[row.get(name) for name in columns] for row in rows]
    if not known or any(pd.isna(value) for values in known for value in values):
        return None
    speedup, low, high, trials = np.array(known, dtype=np.float64).T
    if np.min(trials) < FEWEST_TRIALS:
        return None
    variance = np.square(np.log(high / low) / 2 / t_quantile(trials - 1))
    mean, total = float(np.mean(np.log(speedup))), float(np.sum(variance))
    df = total**2 / float(np.sum(np.square(variance) / (trials - 1))) if total else 1.0
    half = float(t_quantile(df)) * math.sqrt(total) / len(rows)
    return math.exp(mean - half), math.exp(mean + half)
