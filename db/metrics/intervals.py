"""95 % intervals of a median over trials, and of a quotient of means, for thousands of groups at once.

The unit is the trial, one fresh process: samples of one process are not independent. With 20 trials or more
the interval of a median is the percentile bootstrap over trials (Efron and Tibshirani 1993, An Introduction
to the Bootstrap, chapter 13). A bootstrap of fewer trials is too narrow, so below 20 it is Student's t
interval (on logarithms for positive values). Fewer than three trials have none: with one degree of freedom it
would be thirteen standard errors wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import special

from db.metrics.groups import Floats, Groups, Ints, Present

LEVEL = 0.95
FEWEST_TRIALS = 3  # fewer leave one degree of freedom or none
BOOTSTRAP_TRIALS = 20  # fewer make a bootstrap over trials too narrow: docs/measured/verdicts.md
RESAMPLES = 2000
_BLOCK = 1024  # groups whose resampled medians are held in memory together


class Method(StrEnum):
    """How an interval was made; `none` where there is none."""

    BOOTSTRAP = "bootstrap"
    STUDENT_T = "student_t"
    REFERENCE = "reference"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Medians:
    """Per group: the median, the ends of its interval (NaN without one), the number of trials, the method."""

    value: Floats
    low: Floats
    high: Floats
    n: Ints
    method: list[Method]


def _resampled_ranks(n: int, resamples: int, seed: int) -> tuple[Ints, Ints]:
    """Ranks of the two middle values of `resamples` resamples of n values, without drawing n each time.

    A resample of ranks is floor(n x U) of n uniforms, so its k-th smallest is floor(n x the k-th smallest
    uniform), which is Beta(k, n + 1 - k); the next one above it adds a Beta(1, n - k) share of what is left
    (David and Nagaraja 2003, Order Statistics, section 2.5). Shape of both: (resamples,).
    """
    generator = np.random.default_rng([seed, n])
    k = (n + 1) // 2
    lower = generator.beta(k, n + 1 - k, resamples)
    upper = lower + (1 - lower) * generator.beta(1, n - k, resamples) if n % 2 == 0 else lower
    return tuple(np.minimum(n * u, n - 1).astype(np.int64) for u in (lower, upper))  # type: ignore[return-value]


def _bootstrap(present: Present, low: Floats, high: Floats, seed: int, resamples: int) -> None:
    tail = (1 - LEVEL) / 2
    for n in np.unique(present.n[present.n >= BOOTSTRAP_TRIALS]):
        lower, upper = _resampled_ranks(int(n), resamples, seed)
        groups = np.flatnonzero(present.n == n)
        for block in np.split(groups, range(_BLOCK, len(groups), _BLOCK)):
            start = present.start[block, None]
            medians = (present.values[start + lower] + present.values[start + upper]) / 2
            low[block], high[block] = np.quantile(medians, [tail, 1 - tail], axis=1)


def _t_quantile(df: Ints) -> Floats:
    """The quantile of Student's t that half of an interval of `LEVEL` reaches to."""
    quantile: Floats = np.asarray(special.stdtrit(df, (1 + LEVEL) / 2), dtype=np.float64)
    return quantile


def _student_t(present: Present, low: Floats, high: Floats, *, log: bool) -> None:
    few = (present.n >= FEWEST_TRIALS) & (present.n < BOOTSTRAP_TRIALS)
    n = np.where(few, present.n, FEWEST_TRIALS)
    scaled = np.log(present.values) if log else present.values
    mean = np.bincount(present.codes, scaled, len(n)) / n
    squares = np.bincount(present.codes, (scaled - mean[present.codes]) ** 2, len(n))
    half = _t_quantile(n - 1) * np.sqrt(squares / (n - 1) / n)
    back = np.exp if log else np.asarray
    low[few], high[few] = back((mean - half)[few]), back((mean + half)[few])


def medians_over_trials(
    groups: Groups, values: Floats, *, log: bool, seed: int = 0, resamples: int = RESAMPLES
) -> Medians:
    """The median per group and its interval.

    `values`: one per trial, NaN where missing; positive when `log`. The interval always holds the median. It
    depends on the values of its own group, `seed` and `resamples` alone, not on other groups or their order.
    """
    present = groups.present(values)
    value = present.quantile(0.5)
    low, high = np.full(groups.count, np.nan), np.full(groups.count, np.nan)
    _student_t(present, low, high, log=log)
    _bootstrap(present, low, high, seed, resamples)
    method = [
        Method.NONE if n < FEWEST_TRIALS else Method.STUDENT_T if n < BOOTSTRAP_TRIALS else Method.BOOTSTRAP
        for n in present.n.tolist()
    ]
    return Medians(value, np.minimum(low, value), np.maximum(high, value), present.n, method)


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
    scale: Floats = _t_quantile(n - 1) ** 2 / (n - 1) / n

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
