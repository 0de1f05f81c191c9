"""What the past says about noise: of one trial in its series, and of whole runs on a machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from compilewatch.db.judge.change_points import spread_within
from compilewatch.db.judge.policy import HistoryPolicy, Policy
from compilewatch.db.judge.statistics.contrast import Contrasts, Observations
from compilewatch.db.metrics.groups import Bools, Floats, Ints, numbered


@dataclass(frozen=True)
class Past:
    """Earlier trials of the compared cases, one entry per trial: `series` is the case's number, `run` and
    `build` are numbered, runs in order of time; `x` is a log value, never NaN.
    """

    series: Ints
    run: Ints
    build: Ints
    x: Floats

    @cached_property
    def cells(self) -> Cells:
        """Its trials summed per series and run; there must be some."""
        width = int(self.run.max()) + 1
        keys, cell = numbered(self.series * width + self.run)
        n = np.bincount(cell).astype(np.float64)
        mean = np.bincount(cell, self.x) / n
        squares = np.bincount(cell, np.square(self.x - mean[cell])).astype(np.float64)
        build = np.zeros(len(keys), dtype=np.int64)
        build[cell] = self.build
        return Cells((keys // width).astype(np.int64), build, n, mean, squares)

    def with_values(self, x: Floats) -> Past:
        """The trials that have a value, with it; `x` as for `Observations.with_values`."""
        return replace(self, x=x).where(np.isfinite(x))

    def where(self, mask: Bools) -> Past:
        """Those that the flags of `mask`, one per trial, choose."""
        return Past(self.series[mask], self.run[mask], self.build[mask], self.x[mask])

    def beside(self, observed: Observations) -> Past:
        """With the compared trials themselves: of a side that holds several runs, these are repeated."""
        runs, builds = (int(each.max(initial=-1)) + 1 for each in (self.run, self.build))
        return Past(
            np.concatenate((self.series, observed.case)),
            np.concatenate((self.run, observed.run + runs)),
            np.concatenate((self.build, observed.side + builds)),
            np.concatenate((self.x, observed.x)),
        )

    @classmethod
    def empty(cls) -> Past:
        """The past of cases that were never measured before."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(nothing, nothing, nothing, np.zeros(0))


@dataclass(frozen=True)
class SeriesNoise:
    """Per case: variance of one trial's log value from the past, its df, and how many past runs there are."""

    variance: Floats
    df: Floats
    runs: Ints


@dataclass(frozen=True)
class RunNoise:
    """Variance that whole runs on this machine add, and its degrees of freedom (infinite if assumed): one for
    all cases, or one for each case.
    """

    variance: Floats | float
    df: Floats | float


@dataclass(frozen=True)
class Cells:
    """Past trials summed per series and run, in order of series and time."""

    series: Ints
    build: Ints
    n: Floats
    mean: Floats
    squares: Floats


def series_noise(past: Past, cases: int, policy: Policy) -> SeriesNoise:
    """From the trials within each past run where runs hold several, else from run to run within segments.

    `df` is at most `policy.history_df_limit`: an old machine does not vouch for today's for ever.
    """
    if not len(past.x):
        return SeriesNoise(np.full(cases, np.nan), np.zeros(cases), np.zeros(cases, dtype=np.int64))
    cells = past.cells
    runs = np.bincount(cells.series, minlength=cases).astype(np.int64)
    df = np.bincount(cells.series, cells.n - 1, cases)
    around = np.bincount(cells.series, cells.squares, cases)
    starts = np.cumsum(runs) - runs
    singly = np.flatnonzero((runs - 1 > df) & (runs >= 3))
    for length in np.unique(runs[singly]):
        alike = singly[runs[singly] == length]
        points = cells.mean[starts[alike, None] + np.arange(length)]
        around[alike], df[alike] = _around_levels(points, policy.history)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(df > 0, around / df, np.nan)
    return SeriesNoise(variance, np.minimum(df, policy.history_df_limit), runs)


def _around_levels(points: Floats, policy: HistoryPolicy) -> tuple[Floats, Floats]:
    """Per series, a row of `points`, the sum of squares around the level of each segment, and its df.

    A series whose steps are as large as its spread is steady: it has one level and is not searched.
    """
    n = points.shape[1]
    off = points - np.add.reduce(points, axis=1)[:, None] / n
    around, df = np.add.reduce(off * off, axis=1), np.full(len(points), n - 1.0)
    steps = points[:, 1:] - points[:, :-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.add.reduce(steps * steps, axis=1) / (n - 1) / (around / n)
    restless = np.flatnonzero(ratio < policy.steady_ratio)
    if len(restless):
        around[restless], df[restless] = np.transpose(spread_within(points[restless], policy))
    return around, df


@dataclass(frozen=True)
class Shown:
    """What is known of the noise between runs beside the past of the compared cases.

    `canaries` are the log changes of the machine's canaries, each as of one run against one: over the root
    of half its `Contrasts.run_scale`. `share` is the part of a run's noise that reaches the metric, `floor`
    asks for the CV that the machine's noise floor shows, None where there is none.
    """

    canaries: Floats = field(default_factory=lambda: np.zeros(0))
    share: float = 1.0
    floor: Callable[[], float | None] = lambda: None


def run_noise(repeated: RunNoise, shown: Shown, policy: Policy, *, alone: bool) -> RunNoise:
    """Variance between runs, pooled by degrees of freedom from repeated runs of the past, the canaries of the
    compared runs and, with `policy.run_cv_df`, what such machines are known for: `policy.run_cv`. Where
    nothing else is known (`alone`: no past, no canary, no other case) it is the higher `policy.run_cv_alone`,
    or the machine's noise floor where that is higher still.

    So two degrees of freedom of a default make the tails of a machine that nobody knows as heavy as those of
    the public series are, and every observation of this machine's makes them lighter. Never below
    `policy.between_run_floor`. What the noise of runs does not reach (`shown.share` 0) has its past alone.
    """
    least = policy.between_run_floor**2
    if shown.share == 0.0:
        is_known = repeated.df > 0 and repeated.variance > least
        return repeated if is_known else RunNoise(least, np.inf)
    # That canaries stood still between two runs does not show that cases would.
    canaries = np.maximum(np.square(shown.canaries) / 2.0, policy.run_cv**2)
    default = max(policy.run_cv_alone, shown.floor() or 0.0) if alone else policy.run_cv
    part = shown.share**2
    variances = np.array([default**2 * part, float(np.sum(canaries)) * part, float(repeated.variance)])
    weights = np.array([policy.run_cv_df, 1.0, float(repeated.df)])
    df = policy.run_cv_df + len(canaries) + float(repeated.df)
    return RunNoise(max(float(np.sum(weights * variances)) / df, least), df)


def repeated_runs(past: Past, own: tuple[Floats, Floats], policy: Policy) -> RunNoise:
    """Variance between repeated runs of one build, over all series of the machine together; df 0 without any.

    One-way analysis of variance: (mean square between runs - mean square within) / trials a run, at least 0.
    `own`, the variances and df of the compared trials, stands in for the within part where past runs hold one
    trial each. Runs shift all series together, so the df is that of the best-known series, not their sum.
    """
    nothing = RunNoise(0.0, 0.0)
    if not len(past.x):
        return nothing
    cells = past.cells
    width = int(cells.build.max()) + 1
    keys, group = numbered(cells.series * width + cells.build)
    runs = np.bincount(group).astype(np.float64)
    level = np.bincount(group, cells.n * cells.mean) / np.bincount(group, cells.n)
    between = np.bincount(group, cells.n * np.square(cells.mean - level[group]))
    repeated = runs >= 2
    if not repeated.any():
        return nothing
    freedom = runs[repeated] - 1
    mean_square = float(between[repeated].sum() / freedom.sum())
    trials = float(cells.n[repeated[group]].mean())
    estimate = (mean_square - _within_variance(cells, own)) / trials
    df = float(min(np.bincount(keys[repeated] // width, freedom).max(), policy.history_df_limit))
    return RunNoise(max(estimate, 0.0), df)


def _within_variance(cells: Cells, own: tuple[Floats, Floats]) -> float:
    df = float(np.sum(cells.n - 1))
    if df > 0:
        return float(np.sum(cells.squares)) / df
    variance, own_df = own
    known = np.isfinite(variance) & (own_df > 0)
    return float(np.average(variance[known], weights=own_df[known])) if known.any() else 0.0


# What the other cases of the same two runs say of the runs.

FEWEST_NEIGHBOURS = 3
"""Cases of two runs from which they say something of the runs: a case, and two beside it."""

NORMAL_MAD = 1.4826
"""Standard deviation of a normal variable over its median absolute deviation."""
_MEDIAN_EFFICIENCY = 0.37
"""Of the median absolute deviation at a normal variable (Hampel 1974, J. Am. Statist. Assoc. 69, 383-393)."""


@dataclass(frozen=True)
class Neighbours:
    """The cases of two runs: `difference` and `run_scale` as in `Contrasts`, `within` the variance that
    trials alone give a difference; `used` flags those that say something of the runs.
    """

    difference: Floats
    run_scale: Floats
    within: Floats
    used: Bools

    @classmethod
    def of(cls, contrasts: Contrasts, within: Floats, counted: Bools) -> Neighbours:
        """Of the cases in `counted`, those that were not interleaved. Where the noise of their trials is not
        known, it counts as noise of their runs.
        """
        known = np.isfinite(contrasts.difference) & (contrasts.run_scale > 0)
        return cls(contrasts.difference, contrasts.run_scale, np.nan_to_num(within), counted & known)


def with_neighbours(known: RunNoise, cases: Neighbours, policy: Policy) -> RunNoise:
    """`known`, and what the other cases of the same runs differ by, per case.

    Where canaries or a past show what runs have in common (`known.df` beyond the
    default's), it is how far the cases scatter around each other; else how far the others moved. Some may
    have changed by themselves: so medians count, up to `policy.run_surprise` of the default's deviations.
    """
    variance, df = (np.full(len(cases.used), float(each)) for each in (known.variance, known.df))
    chosen = np.flatnonzero(cases.used)
    if len(chosen) < FEWEST_NEIGHBOURS:
        return RunNoise(variance, df)
    x = cases.difference[chosen] / np.sqrt(cases.run_scale[chosen])
    if known.df > policy.run_cv_df:
        middle = np.full(len(x), np.median(np.abs(x - np.median(x))))
    else:
        middle = _median_of_others(np.abs(x))
    own = float(np.median(cases.within[chosen] / cases.run_scale[chosen]))
    most = policy.run_surprise * policy.run_cv
    others = np.clip(np.square(NORMAL_MAD * middle) - own, 0.0, most**2)
    freedom = _MEDIAN_EFFICIENCY * (len(x) - 1)
    # How cases scatter around each other says nothing of what they have in common: it makes nothing calmer.
    tells = (others > variance[chosen]) if known.df > policy.run_cv_df else np.ones(len(x), dtype=np.bool_)
    chosen, others = chosen[tells], others[tells]
    pooled = (df[chosen] * variance[chosen] + freedom * others) / (df[chosen] + freedom)
    variance[chosen] = np.maximum(pooled, policy.between_run_floor**2)
    df[chosen] += freedom
    return RunNoise(variance, df)


def _median_of_others(sizes: Floats) -> Floats:
    """Of each value the median of all but itself."""
    n = len(sizes) - 1
    order = np.argsort(sizes)
    ascending, rank = sizes[order], np.empty(n + 1, dtype=np.int64)
    rank[order] = np.arange(n + 1)
    low, high = (ascending[place + (rank <= place)] for place in ((n - 1) // 2, n // 2))
    middle: Floats = (low + high) / 2.0
    return middle


@dataclass(frozen=True)
class Together:
    """What all cases of two runs have in common: a log change, and the variance that a case has around it
    beside that of its trials, with its degrees of freedom.
    """

    change: float
    variance: float
    df: float


def together(cases: Neighbours, policy: Policy) -> Together:
    """By median and median absolute deviation, as some cases may have changed. Fewer than
    `policy.run_neighbours` cases say nothing: df 0.
    """
    n = int(np.count_nonzero(cases.used))
    if n < policy.run_neighbours:
        return Together(0.0, 0.0, 0.0)
    x, within, scale = (each[cases.used] for each in (cases.difference, cases.within, cases.run_scale))
    change = float(np.median(x))
    spread = (NORMAL_MAD * float(np.median(np.abs(x - change)))) ** 2 - float(np.median(within))
    least = float(np.median(scale)) * policy.between_run_floor**2
    df = min(_MEDIAN_EFFICIENCY * (n - 1), float(policy.history_df_limit))
    return Together(change, max(spread, least), df)
