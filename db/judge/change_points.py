"""Where series of log values change their level: kernel candidates, each held to a significance test.

Rows of `points` are series of one length: what a few points cost numpy is paid once for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy

from compilewatch.db.judge.policy import HistoryPolicy
from compilewatch.db.metrics.groups import Floats, Ints

MAD_TO_SD = 1.4826
"""Median absolute deviation to standard deviation of a normal distribution."""

BLOCK = 5
"""Points averaged for the slow part of the noise."""


@dataclass(frozen=True)
class Boundary:
    """A change of level: `start` is the first point after it, `difference` the step of the log values,
    `p_value` corrected for the number of positions, `p_here` that of this position alone, `error` the
    standard error of the step, `size` the step in deviations of the points.
    """

    start: int
    difference: float
    p_value: float
    p_here: float
    error: float
    size: float


class Split(NamedTuple):
    """A boundary of the series in row `row`: its segments begin at `left` and `start`, the later one ends
    before `right`.
    """

    row: int
    left: int
    start: int
    right: int


def boundaries_by_row(points: Floats, policy: HistoryPolicy) -> list[list[Boundary]]:
    """Of every row the candidates that stand."""
    return standing_boundaries(points, candidates(points, policy), policy)


def standing_boundaries(
    points: Floats, candidate_starts: Sequence[Sequence[int]], policy: HistoryPolicy
) -> list[list[Boundary]]:
    """Of every row the boundaries that stand at its `candidate_starts`: the weakest is dropped until all are
    significant and large enough.
    """
    starts = [list(each) for each in candidate_starts]
    standing: list[list[Boundary]] = [[] for _ in starts]
    known: dict[Split, Boundary] = {}
    undecided = [row for row, of_series in enumerate(starts) if of_series]
    while undecided:
        places = {row: _places(row, starts[row], points.shape[1]) for row in undecided}
        unknown = [place for mine in places.values() for place in mine if place not in known]
        known |= zip(unknown, examine_boundaries(points, unknown, policy), strict=True)
        undecided = []
        for row, mine in places.items():
            tested = [known[place] for place in mine]
            worst = _weakest(tested, policy)
            if worst is None:
                standing[row] = tested
            else:
                starts[row].pop(worst)
                undecided += [row] if starts[row] else []
    return standing


def candidates(points: Floats, policy: HistoryPolicy) -> list[list[int]]:
    """Starts of segments by `ruptures.KernelCPD` on each scaled series (Celisse et al. 2018)."""
    if points.shape[1] < 2 * policy.minimum_segment:
        return [[] for _ in points]
    # Its import takes longer than most commands, which have no history to search.
    from ruptures import KernelCPD

    search = KernelCPD(kernel="rbf", min_size=policy.minimum_segment, params={"gamma": policy.kernel_gamma})
    return [
        search.fit_predict(y / scale, pen=policy.candidate_penalty)[:-1] if scale else []
        for y, scale in zip(points, noise_scales(points).tolist(), strict=True)
    ]


def _places(row: int, starts: Sequence[int], length: int) -> list[Split]:
    edges = [0, *starts, length]
    return [Split(row, *ends) for ends in zip(edges, edges[1:], edges[2:], strict=False)]


def _weakest(tested: Sequence[Boundary], policy: HistoryPolicy) -> int | None:
    """Which boundary of a series is to be dropped first; None where all are significant and large enough."""
    failing = [i for i, boundary in enumerate(tested) if not stands(boundary, policy)]
    return max(failing, key=lambda i: tested[i].p_value, default=None)


def stands(boundary: Boundary, policy: HistoryPolicy) -> bool:
    """Significant by ranks, or so large that ranks cannot say it: p by ranks is bounded by the number of
    points, however far the sides are apart.
    """
    sure = boundary.p_value <= policy.p_value or boundary.size >= policy.obvious_size
    return sure and abs(boundary.difference) >= math.log1p(policy.minimum_effect)


def examine_boundaries(points: Floats, places: Sequence[Split], policy: HistoryPolicy) -> list[Boundary]:
    """The steps at the `places`, each between its two segments, by the points nearest to it."""
    reach = policy.points_per_side
    alike: dict[tuple[int, int], list[int]] = {}
    for number, place in enumerate(places):
        sides = min(place.start - place.left, reach), min(place.right - place.start, reach)
        alike.setdefault(sides, []).append(number)
    boundaries_of: dict[int, Boundary] = {}
    for (before, after), numbers in alike.items():
        rows, starts = (
            np.array([getattr(places[number], name) for number in numbers], dtype=np.int64)
            for name in ("row", "start")
        )
        near = points[rows[:, None], starts[:, None] + np.arange(-before, after)]
        boundaries_of |= zip(
            numbers,
            _boundaries(starts, near[:, :before], near[:, before:], points.shape[1], policy),
            strict=True,
        )
    return [boundaries_of[number] for number in range(len(places))]


def _boundaries(
    starts: Ints, before: Floats, after: Floats, length: int, policy: HistoryPolicy
) -> Iterable[Boundary]:
    n, m = before.shape[1], after.shape[1]
    rho = _autocorrelations(before, after, policy.autocorrelation_limit)
    widening = np.sqrt((1.0 + rho) / (1.0 - rho))
    difference = _medians(after) - _medians(before)
    spread = np.sqrt((_squares(before) + _squares(after)) / max(n + m - 2, 1))
    p_here = 2.0 * scipy.special.ndtr(-np.abs(_mann_whitney_z(before, after) / widening))
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(spread > 0, np.abs(difference) / (spread * widening), math.inf)
    columns = (
        starts,
        difference,
        np.minimum(1.0, p_here * length),
        p_here,
        spread * math.sqrt(1.0 / n + 1.0 / m) * widening,
        size,
    )
    return map(Boundary, *(column.tolist() for column in columns))


def _autocorrelations(before: Floats, after: Floats, limit: float) -> Floats:
    """Lag-one autocorrelation of the residuals around both levels, between 0 and `limit`."""
    residual = np.concatenate(
        [side - side.mean(axis=1)[:, None] for side in (before, after)], axis=1, dtype=np.float64
    )
    power = np.add.reduce(residual * residual, axis=1)
    pairs = np.delete(residual[:, 1:] * residual[:, :-1], before.shape[1] - 1, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.add.reduce(pairs, axis=1) / power
    rho: Floats = np.where(power == 0.0, 0.0, np.minimum(np.maximum(share, 0.0), limit))
    return rho


def _mann_whitney_z(before: Floats, after: Floats) -> Floats:
    """Normal scores of the Mann-Whitney U, ties corrected (Mann & Whitney 1947, Ann. Math. Statist. 18)."""
    n, m = before.shape[1], after.shape[1]
    pooled = np.concatenate([before, after], axis=1)
    ties = np.add.reduce(pooled[:, :, None] == pooled[:, None, :], axis=2, dtype=np.int64)
    below = np.add.reduce(pooled[:, :, None] > pooled[:, None, :], axis=2, dtype=np.int64)
    ranks = below + (ties + 1) / 2.0
    u = np.add.reduce(ranks[:, n:], axis=1) - m * (m + 1) / 2.0
    total = n + m
    # Each of t equal values says t^2 - 1, together they say t^3 - t.
    tie_term = np.add.reduce(ties * ties - 1, axis=1) / (total * (total - 1))
    deviation = np.sqrt(n * m / 12.0 * (total + 1 - tie_term))
    with np.errstate(divide="ignore", invalid="ignore"):
        z: Floats = np.where(deviation > 0, (u - n * m / 2.0) / deviation, 0.0)
    return z


def noise_scales(points: Floats) -> Floats:
    """Spread of each series around its changing level, in its units; 0 for a constant series.

    Successive differences do not see the steps, but miss slow noise: medians of blocks of five and half the
    plain deviation keep the scale up where noise is correlated or has two modes.
    """
    length = points.shape[1]
    if length < 2:
        return np.zeros(len(points))
    fine = MAD_TO_SD * _mads(np.diff(points)) / math.sqrt(2.0)
    blocks = points[:, : length // BLOCK * BLOCK].reshape(len(points), -1, BLOCK).mean(axis=2)
    coarse = np.zeros(len(points))
    if blocks.shape[1] > 2:
        coarse = MAD_TO_SD * _mads(np.diff(blocks)) * math.sqrt(BLOCK / 2.0)
    scales: Floats = np.maximum(np.maximum(fine, coarse), 0.5 * np.sqrt(_squares(points) / length))
    return scales


def _mads(rows: Floats) -> Floats:
    return _medians(np.abs(rows - _medians(rows)[:, None]))


def _medians(rows: Floats) -> Floats:
    ranked = np.sort(rows, axis=1)
    half = rows.shape[1] // 2
    if rows.shape[1] % 2:
        return ranked[:, half]
    middle: Floats = (ranked[:, half - 1] + ranked[:, half]) / 2.0
    return middle


def _squares(rows: Floats) -> Floats:
    off = rows - np.add.reduce(rows, axis=1)[:, None] / rows.shape[1]
    squares: Floats = np.add.reduce(off * off, axis=1)
    return squares


def spread_within(points: Floats, policy: HistoryPolicy) -> list[tuple[float, float]]:
    """Of every row the sum of squares around the levels of its segments, and its degrees of freedom."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for row, of_series in enumerate(boundaries_by_row(points, policy)):
        alike.setdefault(tuple(boundary.start for boundary in of_series), []).append(row)
    around, length = np.zeros(len(points)), points.shape[1]
    freedom = np.zeros(len(points))
    for starts, rows in alike.items():
        mine, edges = points[rows], [0, *starts, length]
        around[rows] = sum(_squares(mine[:, i:j]) for i, j in pairwise(edges))
        freedom[rows] = length - 1 - len(starts)
    return list(zip(around.tolist(), freedom.tolist(), strict=True))


def noise_scale(y: Floats) -> float:
    """As `noise_scales` of one series."""
    return float(noise_scales(y[None])[0])


def robust_deviation(residual: Floats) -> float:
    """Standard deviation by the median absolute deviation of at least one value: outliers do not count."""
    return float(MAD_TO_SD * _mads(residual[None])[0])


def boundaries(y: Floats, policy: HistoryPolicy) -> list[Boundary]:
    """As `boundaries_by_row` of one series."""
    return boundaries_by_row(y[None], policy)[0]


def examine_boundary(y: Floats, left: int, start: int, right: int, policy: HistoryPolicy) -> Boundary:
    """The step at `start` between the segments from `left` and up to `right`, by the nearest points."""
    return examine_boundaries(y[None], [Split(0, left, start, right)], policy)[0]


def autocorrelation(before: Floats, after: Floats, limit: float) -> float:
    """Lag-one autocorrelation of the residuals around both levels, between 0 and `limit`."""
    return float(_autocorrelations(before[None], after[None], limit)[0])
