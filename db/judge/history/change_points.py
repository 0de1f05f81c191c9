"""Where a series of log values changes its level: kernel candidates, each held to a significance test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import ruptures
from scipy import special

from db.judge.policy import HistoryPolicy
from db.metrics.groups import Floats

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


def noise_scale(y: Floats) -> float:
    """Spread of a series around its changing level, in the units of `y`; 0 for a constant series.

    Successive differences do not see the steps, but miss slow noise: medians of blocks of five and half the
    plain deviation keep the scale up where noise is correlated or has two modes.
    """
    if len(y) < 2:
        return 0.0
    fine = MAD_TO_SD * _mad(np.diff(y)) / math.sqrt(2.0)
    blocks = y[: len(y) // BLOCK * BLOCK].reshape(-1, BLOCK).mean(axis=1)
    coarse = MAD_TO_SD * _mad(np.diff(blocks)) * math.sqrt(BLOCK / 2.0) if len(blocks) > 2 else 0.0
    return max(fine, coarse, 0.5 * math.sqrt(squares(y) / len(y)))


def robust_deviation(residual: Floats) -> float:
    """Standard deviation by the median absolute deviation of at least one value: outliers do not count."""
    return MAD_TO_SD * _mad(residual)


def _mad(values: Floats) -> float:
    return _median(np.abs(values - _median(values)))


def _median(values: Floats) -> float:
    """Of at least one value, none of them NaN: what `numpy.median` says, without its cost on a few points."""
    ranked = np.sort(values)
    half = len(ranked) // 2
    if len(ranked) % 2:
        return float(ranked[half])
    return float(ranked[half - 1] + ranked[half]) / 2.0


def squares(values: Floats) -> float:
    """Sum of squares around the mean of at least one value."""
    off = values - np.add.reduce(values) / len(values)
    return float(np.add.reduce(off * off))


def candidates(y: Floats, policy: HistoryPolicy) -> list[int]:
    """Starts of segments by `ruptures.KernelCPD` on the scaled series (Celisse et al. 2018)."""
    (found,) = kernel_candidates(y[None], np.array([noise_scale(y)]), policy)
    return found


def kernel_candidates(points: Floats, scales: Floats, policy: HistoryPolicy) -> list[list[int]]:
    """As `candidates` of every row of `points`, with the noise scale of each."""
    if points.shape[1] < 2 * policy.minimum_segment:
        return [[] for _ in points]
    detector = ruptures.KernelCPD(
        kernel="rbf", min_size=policy.minimum_segment, params={"gamma": policy.kernel_gamma}
    )
    starts: list[list[int]] = []
    for y, scale in zip(points, scales.tolist(), strict=True):
        ends = detector.fit((y / scale)[:, None]).predict(pen=policy.candidate_penalty) if scale else []
        starts.append([int(end) for end in ends[:-1]])
    return starts


def boundaries(y: Floats, policy: HistoryPolicy) -> list[Boundary]:
    """The candidates that stand: the weakest is dropped until all are significant and large enough."""
    starts = candidates(y, policy)
    known: dict[tuple[int, int, int], Boundary] = {}
    while starts:
        edges = [0, *starts, len(y)]
        tested = []
        for ends in zip(edges, edges[1:], edges[2:], strict=False):
            if ends not in known:
                known[ends] = examine_boundary(y, *ends, policy)
            tested.append(known[ends])
        worst = weakest(tested, policy)
        if worst is None:
            return tested
        starts.pop(worst)
    return []


def weakest(tested: Sequence[Boundary], policy: HistoryPolicy) -> int | None:
    """Which boundary of a series is to be dropped first; None where all are significant and large enough."""
    failing = [i for i, boundary in enumerate(tested) if not _stands(boundary, policy)]
    return max(failing, key=lambda i: tested[i].p_value, default=None)


def _stands(boundary: Boundary, policy: HistoryPolicy) -> bool:
    """Significant by ranks, or so large that ranks cannot say it: p by ranks is bounded by the number of
    points, however far the sides are apart.
    """
    sure = boundary.p_value <= policy.p_value or boundary.size >= policy.obvious_size
    return sure and abs(boundary.difference) >= math.log1p(policy.minimum_effect)


def segment_starts(y: Floats, policy: HistoryPolicy) -> list[int]:
    """Positions in `y`, ascending, at which `boundaries` finds a new level."""
    return [boundary.start for boundary in boundaries(y, policy)]


def examine_boundary(y: Floats, left: int, start: int, right: int, policy: HistoryPolicy) -> Boundary:
    """The step at `start` between the segments from `left` and up to `right`, by the nearest points."""
    reach = policy.points_per_side
    before, after = y[max(left, start - reach) : start], y[start : min(right, start + reach)]
    rho = autocorrelation(before, after, policy.autocorrelation_limit)
    widening = math.sqrt((1.0 + rho) / (1.0 - rho))
    z = mann_whitney_z(before, after) / widening
    difference = _median(after) - _median(before)
    around = squares(before) + squares(after)
    spread = math.sqrt(around / max(len(before) + len(after) - 2, 1))
    p_here = 2.0 * float(special.ndtr(-abs(z)))
    return Boundary(
        start=start,
        difference=difference,
        p_value=min(1.0, p_here * len(y)),
        p_here=p_here,
        error=spread * math.sqrt(1.0 / len(before) + 1.0 / len(after)) * widening,
        size=abs(difference) / (spread * widening) if spread > 0 else math.inf,
    )


def autocorrelation(before: Floats, after: Floats, limit: float) -> float:
    """Lag-one autocorrelation of the residuals around both levels, between 0 and `limit`."""
    residual = np.concatenate([before - before.mean(), after - after.mean()])
    power = float(np.dot(residual, residual))
    if power == 0.0:
        return 0.0
    pairs = np.delete(residual[1:] * residual[:-1], len(before) - 1)
    return min(max(float(pairs.sum()) / power, 0.0), limit)


def mann_whitney_z(before: Floats, after: Floats) -> float:
    """Normal score of the Mann-Whitney U, ties corrected (Mann & Whitney 1947, Ann. Math. Statist. 18).

    Neither side is empty.
    """
    n, m = len(before), len(after)
    pooled = np.concatenate([before, after])
    _, place, ties = np.unique(pooled, return_inverse=True, return_counts=True)
    # Equal values share the mean of their ranks.
    ranks = (np.cumsum(ties) - (ties - 1) / 2.0)[place]
    u = float(ranks[n:].sum()) - m * (m + 1) / 2.0
    total = n + m
    tie_term = float(np.sum(ties**3 - ties)) / (total * (total - 1))
    deviation = math.sqrt(n * m / 12.0 * (total + 1 - tie_term))
    return (u - n * m / 2.0) / deviation if deviation > 0 else 0.0
