"""Geometric mean speedup over the matched set, beside the naive one, with who was left out and why.

A mean over whatever passed rises when slow cases fail. The matched set holds the cases that passed on every
side: status ok, something compiled, and a value. The naive mean takes each side's own set of values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pandas import DataFrame

from compilewatch.db.columns.case import MIXED
from compilewatch.db.errors import UnitError
from compilewatch.db.metrics.eligibility import Excluded, exclusion_reason
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.metrics.quantities import require_same
from compilewatch.db.records.trial import StrategyKind
from compilewatch.db.units import words

CASE = ("workload_id", "strategy_id")
# What says whether a case takes part, where it ran, and what to call it.
NEEDED = (
    *("machine_id", "workload", "strategy", "strategy_kind"),
    *("status", "failure_kind", "nothing_compiled"),
)
CaseRow = Mapping[str, Any]
"""A row of `summarize_cases` by column."""


@dataclass(frozen=True, slots=True)
class SideMean:
    """Geometric means of one side: over the matched set and over its own set; None over no cases."""

    matched: float | None
    naive: float | None
    naive_cases: int


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
    needed = dict.fromkeys((*on, "speedup", *NEEDED))
    return geomeans_of_rows({name: row_dicts(frame[list(needed)]) for name, frame in sides.items()}, on=on)


def geomeans_of_rows(sides: Mapping[str, Sequence[CaseRow]], *, on: tuple[str, ...]) -> MatchedGeomeans:
    """As `matched_geomeans`, of rows with `on`, `speedup` and the columns `NEEDED`."""
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
    own = [float(row["speedup"]) for row in rows.values() if not pd.isna(row["speedup"])]
    return SideMean(geomean(float(rows[key]["speedup"]) for key in matched), geomean(own), len(own))
