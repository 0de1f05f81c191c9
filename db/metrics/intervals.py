"""95 % intervals of a mean over trials, and of a quotient of means, for thousands of groups at once.

The unit is the trial, one fresh process: samples of one process are not independent. The interval of a mean
is Student's t, on logarithms where all values are above 0. Fewer than three trials have none: with one degree
of freedom it would be thirteen standard errors wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import scipy

from compilewatch.db.metrics.groups import Bools, Floats, Groups, Ints

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
