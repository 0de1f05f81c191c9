"""Which trials and which cases count, decided once for every metric.

A trial that failed, or whose numerics fail (a wrong result), counts in nothing. One that was cancelled is no
result, not even a failure. A suspect trial (throttled, shared device) and a wild one keep their memory and
compiler facts but count in no time.

What goes into a formula: finite times, and values of one machine and workload alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from compilewatch.db.errors import UnitError
from compilewatch.db.metrics.groups import Bools, Floats, Groups, equal_to, flags, floats
from compilewatch.db.records.fields import INT64_MAX
from compilewatch.db.records.trial import FailureKind, NumericsStatus, Status
from compilewatch.db.units import words


def _wrong_result(trials: DataFrame) -> Bools:
    return equal_to(trials["numerics_status"], NumericsStatus.FAIL.value)


def passed_mask(trials: DataFrame) -> Bools:
    """One flag per trial: it ran to its end and its result was not wrong."""
    return ~(equal_to(trials["status"], Status.FAILED.value) | _wrong_result(trials))


def without_cancelled(trials: DataFrame) -> DataFrame:
    """The rows of trials that were not cancelled: one that somebody stopped says nothing about its case."""
    if trials.empty:
        return trials
    cancelled = equal_to(trials["failure_kind"], FailureKind.CANCELLED.value)
    return trials[~cancelled] if cancelled.any() else trials


def suspect_mask(trials: DataFrame) -> Bools:
    """One flag per trial: the device's state makes its times untrustworthy."""
    return flags(trials["suspect"])


def wild_trials(trials: DataFrame) -> Bools:
    """One flag per trial: its step time stands alone, so it is set aside."""
    return _wild_mask(trials, passed_mask(trials) & ~suspect_mask(trials))


def timed_mask(trials: DataFrame) -> Bools:
    """One flag per trial: it counts in times."""
    sound = passed_mask(trials) & ~suspect_mask(trials)
    return sound & ~_wild_mask(trials, sound)


def failure_kinds(trials: DataFrame) -> Series:
    """Per trial the kind of failure: `wrong_result` where only the numerics failed, missing if it passed."""
    kinds = trials["failure_kind"].astype("str")
    unnamed = _wrong_result(trials) & kinds.isna().to_numpy()
    return kinds.mask(unnamed, FailureKind.WRONG_RESULT.value) if unnamed.any() else kinds


def positive(column: Series) -> Floats:
    """A measured amount as float64; what no record can hold (0, less, beyond 64 bits) is no measurement and
    missing.
    """
    values = floats(column)
    return np.where((values > 0) & (values <= INT64_MAX), values, np.nan)


@dataclass(frozen=True, slots=True)
class Excluded:
    """A case that takes no part, and why; `side` where one of several sides is meant."""

    workload: str
    strategy: str
    reason: str
    side: str | None = None


def exclusion_reason(case: Mapping[str, Any], needed: Mapping[str, str]) -> str | None:
    """Why a row of cases cannot take part, or None where it can.

    `needed` names the columns that must hold a value and what to call each in the reason.
    """
    if case["status"] == Status.FAILED.value:
        return f"failed: {words(case['failure_kind'])}"
    if case["nothing_compiled"]:
        return "nothing was compiled"
    return next((f"no {words}" for column, words in needed.items() if pd.isna(case[column])), None)


# The canary is no case: its workloads measure the machine and are left out where cases are listed.

CANARY_WORKLOADS = "canary*"


def without_canaries(trials: DataFrame, pattern: str = CANARY_WORKLOADS) -> DataFrame:
    """The rows of a frame with column `workload` whose workload does not fit the shell-style `pattern`."""
    if trials.empty:
        return trials
    fits = re.compile(translate(pattern))
    named = [name for name in trials["workload"].unique() if fits.match(str(name))]
    return trials[~trials["workload"].isin(named)] if named else trials


def is_canary(workload: str) -> bool:
    """Whether a workload of this name measures the machine."""
    return fnmatchcase(workload, CANARY_WORKLOADS)


FACTOR = 2.0
"""How far apart fresh processes of one code are: of 140 JMH benchmarks (icpe-data-challenge-jmh) 0.01 % of
threes have one alone by 2, and 0.7 % by 1.5, which are modes: without them a mean is farther from the truth.
Host-bound steps of a GPU vary by 8 to 31 %.
"""
_TIMES_APART = 3.0
WILD = "wild: its step time is far from all others of the case and run, so it counts in no time"
"""What is said of a wild trial."""
_FEWEST_SIBLINGS = 2
_SIBLINGS = ["run_id", "build_id", "machine_id", "workload_id", "strategy_id"]


def _wild_mask(trials: DataFrame, counted: Bools) -> Bools:
    """One flag per trial whose step time, its own or that of eager beside it, is wild. Those not `counted`
    are neither wild nor anybody's siblings.

    Siblings are the trials of one case in one run, timed by one method. A trial is wild that is off its
    nearest sibling by more than FACTOR and by more than _TIMES_APART times what the other siblings differ by.
    Where a case has two modes none is wild once each has two trials. With fewer than three trials nobody
    knows which is wild.
    """
    if not counted.any():
        return np.zeros(len(trials), dtype=np.bool_)
    siblings = Groups.by(trials, [*_SIBLINGS, *({"timing_method"} & set(trials.columns))])
    wild = np.zeros(len(trials), dtype=np.bool_)
    for name in ("latency_ns", "control_latency_ns"):
        times = trials[name].to_numpy(dtype=np.float64, na_value=np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            x = np.where(counted & (times > 0), np.log(times), np.nan)
        wild |= alone(siblings, x)
    return wild


def alone(groups: Groups, x: Floats, factor: float = FACTOR) -> Bools:
    """One flag per log value that is wild in its group."""
    present = groups.present(x)
    last = present.n - 1
    enough = present.n > _FEWEST_SIBLINGS
    low, high = (present.pick(np.where(enough, rank, 0)) for rank in (np.zeros_like(last), last))
    above, below = (present.pick(np.where(enough, rank, 0)) for rank in (np.ones_like(last), last - 1))
    far = np.zeros(len(x), dtype=np.bool_)
    for end, nearest, others in ((low, above, high - above), (high, below, below - low)):
        distance = np.abs(end - nearest)
        wild = enough & (distance > math.log(factor)) & (distance > _TIMES_APART * others)
        far |= wild[groups.codes] & (x == end[groups.codes])
    return far


def nanoseconds(value: float | Fraction) -> Fraction:
    """A time that is calculated with exactly. Raises UnitError for a value that is not finite."""
    if not math.isfinite(value):
        raise UnitError(f"{value} is no measurement.", "Leave out what is missing.")
    return Fraction(value)


def require_one(frame: DataFrame, columns: tuple[str, ...], purpose: str) -> None:
    """Raises UnitError when `frame` mixes several values in one of `columns`; an empty frame passes."""
    for column in columns:
        require_same(column, frame[column].dropna().unique(), purpose)


def require_same(column: str, values: Iterable[object], purpose: str) -> None:
    """Raises UnitError when `values`, of `column` and none of them missing, differ; no values pass."""
    distinct = sorted({str(value) for value in values})
    if len(distinct) > 1:
        raise UnitError(
            f"{purpose} cannot mix several values of {words(column)}: {', '.join(distinct[:3])}.",
            f"Choose one {column.removesuffix('_id')}.",
        )
