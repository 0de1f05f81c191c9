"""Grouped arithmetic on numpy columns, thousands of groups at once; NaN is a missing value and is skipped.

95 % intervals of a mean over trials, and of a quotient of means, for thousands of groups at once.

The unit is the trial, one fresh process: samples of one process are not independent. The interval of a mean
is Student's t, on logarithms where all values are above 0. Fewer than three trials have none: with one degree
of freedom it would be thirteen standard errors wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray
from pandas import DataFrame, Series

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_SPARSE = 16  # times as wide as it has keys, a range is better sorted than counted
_MOST_CODES = np.iinfo(np.int64).max


def floats(column: Series) -> Floats:
    """A nullable numeric column as float64, missing values as NaN."""
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def flags(column: Series) -> Bools:
    """A nullable boolean column, missing values as False."""
    return column.to_numpy(dtype=np.bool_, na_value=False)


def equal_to(column: Series, word: str) -> Bools:
    """Where a column of text is `word`; a missing text is not."""
    # Of the array: a series is brought into line and wrapped again, which costs more than comparing.
    return np.asarray(column.array == word, dtype=np.bool_)


def numbered(keys: Ints) -> tuple[Ints, Ints]:
    """The distinct `keys` (none below 0) ascending, and for every key its number among them.

    As `np.unique` with the inverse, which sorts: keys that lie close together are counted instead.
    """
    if not len(keys) or keys.max() > _SPARSE * len(keys):
        distinct, numbers = np.unique(keys, return_inverse=True)
        return distinct, numbers.astype(np.int64)
    there = np.bincount(keys) > 0
    return np.flatnonzero(there).astype(np.int64), (np.cumsum(there) - 1)[keys]


def ranks(column: Series) -> tuple[Ints, int]:
    """Per row the rank of its value among the distinct ones, missing last; and one more than the last."""
    codes, distinct = column.array.factorize()
    rank_of = np.empty(len(distinct) + 1, dtype=np.int64)
    rank_of[distinct.argsort()] = np.arange(len(distinct))
    rank_of[-1] = len(distinct)  # where the code is -1
    return rank_of[codes], len(rank_of)


@dataclass(frozen=True, slots=True)
class Present:
    """The values that are there, ascending in each group: group g owns `values[start[g]:start[g] + n[g]]`."""

    values: Floats
    codes: Ints
    start: Ints
    n: Ints

    def pick(self, rank: Ints) -> Floats:
        """The value of that rank in each group (shape: groups); NaN for an empty group."""
        picked = np.full(len(self.n), np.nan)
        filled = self.n > 0
        picked[filled] = self.values[(self.start + rank)[filled]]
        return picked

    @property
    def positive(self) -> Bools:
        """The groups with values, all of them above 0."""
        return self.pick(np.zeros(len(self.n), dtype=np.int64)) > 0

    def mean(self) -> Floats:
        """Per group: geometric where its values are above 0, else arithmetic; of equal values their own."""
        first = self.pick(np.zeros(len(self.n), dtype=np.int64))
        log, count = first > 0, np.maximum(self.n, 1)
        first_of = first[self.codes]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            ratio = self.values / first_of
            # Of a first value near 0 the ratio is no number any more, and its logarithm is one.
            logs = np.where(np.isinf(ratio), np.log(self.values) - np.log(first_of), np.log(ratio))
            off = np.where(log[self.codes], logs, self.values - first_of)
        mean = np.bincount(self.codes, off, len(self.n)) / count
        return np.where(log, first * np.exp(np.where(log, mean, 0.0)), first + mean)

    def quantile(self, fraction: float) -> Floats:
        """Per group, interpolated linearly (numpy's default, Hyndman and Fan 1996, type 7)."""
        position = fraction * np.maximum(self.n - 1, 0)
        below = np.floor(position).astype(np.int64)
        above = np.minimum(below + 1, np.maximum(self.n - 1, 0))
        low, high = self.pick(below), self.pick(above)
        return low + (high - low) * (position - below)


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows of a frame by group: `codes[row]` in 0 .. count - 1."""

    codes: Ints
    count: int

    @classmethod
    def by(cls, frame: DataFrame, keys: list[str]) -> Groups:
        """Groups of equal `keys` (missing ones equal each other), numbered in sorted order of the keys."""
        codes, width = np.zeros(len(frame), dtype=np.int64), 1
        for key in keys:
            of_rows, more = ranks(frame[key])
            if width * more > _MOST_CODES:
                codes, uniques = pd.factorize(codes, sort=True)
                width = len(uniques)
            codes, width = codes * more + of_rows, width * more
        codes, uniques = pd.factorize(codes, sort=True)
        return cls(codes, len(uniques))

    def renumbered(self, order: NDArray[np.generic]) -> Groups:
        """The same groups, numbered by `order` (one entry per group), equal ones as they were."""
        places = np.empty(self.count, dtype=np.int64)
        places[np.argsort(order, kind="stable")] = np.arange(self.count)
        return Groups(places[self.codes], self.count)

    def present(self, values: Floats) -> Present:
        """The values, one per row, that are not NaN."""
        mask = ~np.isnan(values)
        order = np.lexsort((values[mask], self.codes[mask]))
        codes = self.codes[mask][order]
        n = np.bincount(codes, minlength=self.count).astype(np.int64)
        return Present(
            values[mask][order], codes, np.concatenate(([0], np.cumsum(n)[:-1])).astype(np.int64), n
        )

    def mean(self, values: Floats) -> Floats:
        """The value of a figure over trials: the geometric mean per group, NaN where no value is there.

        A group with a value that is not above 0, which only a compile cost can be, has the arithmetic mean.
        """
        return self.present(values).mean()

    def max(self, values: Floats) -> Floats:
        """Per group, of the values that are there; NaN where none is."""
        present = self.present(values)
        return present.pick(present.n - 1)

    def sum(self, values: Bools | Floats) -> Floats:
        """Per group; NaN where any of its values is."""
        return np.bincount(self.codes, weights=values, minlength=self.count).astype(np.float64)

    def last_row(self, *order: NDArray[np.generic]) -> Ints:
        """Per group the position of its last row in the order of the keys `order`, most important first."""
        ranked = np.lexsort((*reversed(order), self.codes))
        ends = np.cumsum(np.bincount(self.codes, minlength=self.count)) - 1
        return ranked[ends].astype(np.int64)


# The rows of a frame as plain values.


def row_dicts(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of `frame`, each as column -> value."""
    # Column by column: `to_dict("records")` takes ten times as long on the nullable types of these frames.
    columns = {str(name): column.tolist() for name, column in frame.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


LEVEL = 0.95
FEWEST_TRIALS = 3  # fewer leave one degree of freedom or none


class Method(StrEnum):
    """How an interval was made; `none` where there is none."""

    STUDENT_T = "student_t"
    REFERENCE = "reference"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Means:
    """Per group: `Groups.mean`, the ends of its interval (NaN without one), the number of trials."""

    value: Floats
    low: Floats
    high: Floats
    n: Ints
    log: Bools
    """Whether the mean is geometric, and the interval on logarithms."""

    @property
    def method(self) -> list[Method]:
        return [Method.NONE if n < FEWEST_TRIALS else Method.STUDENT_T for n in self.n.tolist()]


def t_quantile(df: Ints | Floats | float) -> Floats:
    """The quantile of Student's t that half of an interval of `LEVEL` reaches to."""
    quantile: Floats = np.asarray(scipy.special.stdtrit(df, (1 + LEVEL) / 2), dtype=np.float64)
    return quantile


def means_over_trials(groups: Groups, values: Floats) -> Means:
    """The mean per group and its interval. `values`: one per trial, NaN where missing.

    They depend on the values of the group alone, not on other groups or their order.
    """
    present = groups.present(values)
    value, log = present.mean(), present.positive
    n = np.maximum(present.n, FEWEST_TRIALS)
    of_value = value[present.codes]
    with np.errstate(invalid="ignore", divide="ignore"):
        off = np.where(log[present.codes], np.log(present.values / of_value), present.values - of_value)
    squares = np.bincount(present.codes, np.square(off), groups.count)
    half = t_quantile(n - 1) * np.sqrt(squares / (n - 1) / n)
    half = np.where(present.n < FEWEST_TRIALS, np.nan, half)
    # Of a group that has no logarithms the end is no exponent.
    exponent = np.where(log, half, 0.0)
    with np.errstate(over="ignore"):
        low, high = (np.where(log, value * np.exp(sign * exponent), value + sign * half) for sign in (-1, 1))
    # Two trials that differ by many powers of ten bound nothing.
    low, high = (np.where(np.isinf(high), np.nan, end) for end in (low, high))
    return Means(value, low, high, present.n, log)


@dataclass(frozen=True, slots=True)
class Quotients:
    """Ends of Fieller's interval per group, as amounts of the denominator's unit.

    `low` and `high` are NaN without an interval and infinite where the denominator may be zero or negative,
    so that the quotient has no upper end; both are infinite where the denominator is negative throughout.
    """

    low: Floats
    high: Floats


def no_quotients(count: int) -> Quotients:
    """Of groups whose intervals nobody asks for."""
    return Quotients(np.full(count, np.nan), np.full(count, np.nan))


def repayment_intervals(groups: Groups, cost: Floats, saved: Floats) -> Quotients:
    """Interval of mean(cost) / mean(saved) per group, read as "how many savings repay the cost".

    Fieller 1954, Some problems in interval estimation, Journal of the Royal Statistical Society B 16(2),
    section 3: all quotients R for which mean(cost - R saved) lies within t standard errors of zero. `cost`
    and `saved` belong to the same trial (NaN where missing: the trial is left out). Fewer than three trials
    have none.
    """
    both = np.where(np.isnan(cost) | np.isnan(saved), np.nan, 1.0)
    present_n = groups.present(both).n
    n = np.maximum(present_n, FEWEST_TRIALS)
    # in one order whatever the order of the trials: sums of floats depend on it
    order = np.lexsort((saved, cost, groups.codes))
    order = order[~np.isnan(both[order])]
    codes, cost, saved = groups.codes[order], cost[order], saved[order]
    mean_cost = np.bincount(codes, cost, groups.count) / n
    mean_saved = np.bincount(codes, saved, groups.count) / n
    off_cost, off_saved = cost - mean_cost[codes], saved - mean_saved[codes]
    scale: Floats = t_quantile(n - 1) ** 2 / (n - 1) / n

    def spread(products: Floats) -> Floats:
        return scale * np.bincount(codes, products, groups.count)

    quadratic = mean_saved**2 - spread(off_saved**2)
    linear = mean_cost * mean_saved - spread(off_cost * off_saved)
    constant = mean_cost**2 - spread(off_cost**2)
    root = np.sqrt(np.maximum(linear**2 - quadratic * constant, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.sort(np.stack([(linear - root) / quadratic, (linear + root) / quadratic]), axis=0)
    bounded = quadratic > 0
    # outside the roots: the upper part alone where the lower one ends before the first step
    upper = (linear**2 > quadratic * constant) & np.isfinite(ends[1]) & (ends[0] < 1) & (mean_cost > 0)
    low = np.where(bounded, ends[0], np.where(upper, ends[1], 1.0))
    high = np.where(bounded, ends[1], np.inf)
    never = (mean_saved <= 0) & (quadratic >= 0)
    low[never] = high[never] = np.inf
    low[present_n < FEWEST_TRIALS] = high[present_n < FEWEST_TRIALS] = np.nan
    return Quotients(low, high)
