"""What the past says about noise: of one trial in its series, and of whole runs on a machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from db.judge.change_points import spread_within
from db.judge.policy import HistoryPolicy, Policy
from db.metrics.groups import Bools, Floats, Ints, numbered

MOST_SERIES_KNOWN = 20_000
"""So many searched series are remembered, of half a kilobyte each; one more, and all are forgotten."""


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
        around[restless], df[restless] = np.transpose(_known_spreads(policy).of(points[restless]))
    return around, df


class _KnownSpreads:
    """Spreads within segments of series that were searched before: the past of a series is the same from one
    comparison to the next. Safe to share between threads.
    """

    def __init__(self, policy: HistoryPolicy) -> None:
        self._policy = policy
        self._known: dict[bytes, tuple[float, float]] = {}

    def of(self, points: Floats) -> list[tuple[float, float]]:
        """As `db.judge.change_points.spread_within`."""
        keys = [row.tobytes() for row in points]
        spreads = {key: spread for key in keys if (spread := self._known.get(key)) is not None}
        new = [place for place, key in enumerate(keys) if key not in spreads]
        if new:
            spreads |= zip(
                (keys[place] for place in new), spread_within(points[new], self._policy), strict=True
            )
            if len(self._known) + len(new) > MOST_SERIES_KNOWN:
                self._known.clear()
            self._known.update(spreads)
        return [spreads[key] for key in keys]


@lru_cache(maxsize=4)
def _known_spreads(policy: HistoryPolicy) -> _KnownSpreads:
    return _KnownSpreads(policy)


def run_noise(past: Past, own: tuple[Floats, Floats], policy: Policy) -> RunNoise:
    """Variance between repeated runs of one build, over all series of the machine together.

    One-way analysis of variance: (mean square between runs - mean square within) / trials a run. `own`, the
    variances and df of the compared trials, stands in for the within part where past runs hold one trial
    each. Runs shift all series together, so the df is that of the best-known series, not their sum. Never
    below `policy.between_run_floor`, which counts as known for certain.
    """
    floor = RunNoise(policy.between_run_floor**2, np.inf)
    if not len(past.x):
        return floor
    cells = past.cells
    width = int(cells.build.max()) + 1
    keys, group = numbered(cells.series * width + cells.build)
    runs = np.bincount(group).astype(np.float64)
    level = np.bincount(group, cells.n * cells.mean) / np.bincount(group, cells.n)
    between = np.bincount(group, cells.n * np.square(cells.mean - level[group]))
    repeated = runs >= 2
    if not repeated.any():
        return floor
    freedom = runs[repeated] - 1
    mean_square = float(between[repeated].sum() / freedom.sum())
    trials = float(cells.n[repeated[group]].mean())
    estimate = (mean_square - _within_variance(cells, own)) / trials
    df = float(min(np.bincount(keys[repeated] // width, freedom).max(), policy.history_df_limit))
    return RunNoise(estimate, df) if estimate > policy.between_run_floor**2 else floor


def _within_variance(cells: Cells, own: tuple[Floats, Floats]) -> float:
    df = float(np.sum(cells.n - 1))
    if df > 0:
        return float(np.sum(cells.squares)) / df
    variance, own_df = own
    known = np.isfinite(variance) & (own_df > 0)
    return float(np.average(variance[known], weights=own_df[known])) if known.any() else 0.0
