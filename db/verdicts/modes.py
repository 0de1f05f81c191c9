"""Two-mode series: a machine that is now in one state, now in another, without anything having changed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import ndimage, stats

from db.metrics.groups import Bools, Floats
from db.verdicts.policy import HistoryPolicy

ROUNDS = 60
SHORT_VISIT = 3
"""Points in one state that noise does not make: a median filter of this width passes them."""


@dataclass(frozen=True)
class TwoModes:
    """Levels of both modes (log values), their common deviation, and the share of points in the higher."""

    low: float
    high: float
    deviation: float
    high_share: float


def two_modes(y: Floats, policy: HistoryPolicy) -> TwoModes | None:
    """Both modes of `y` where two normal distributions of one width fit clearly better than one.

    Expectation maximisation from the quartiles, then BIC against a single normal (5 points at least a mode).
    Only the share, the separation and the gain of the policy together make a series two-mode.
    """
    n = len(y)
    if n < 4 * policy.minimum_segment:
        return None
    spread = float(np.std(y))
    if spread == 0.0:
        return None
    fitted = _fit(y)
    rarer = min(fitted.high_share, 1.0 - fitted.high_share)
    if rarer < policy.two_mode_share:
        return None
    one = float(np.sum(stats.norm.logpdf(y, y.mean(), spread)))
    two = float(np.sum(np.log(_densities(y, fitted).sum(axis=0))))
    gain = 2.0 * (two - one) - 2.0 * math.log(n)  # two parameters more
    separated = fitted.high - fitted.low >= policy.two_mode_separation * fitted.deviation
    return fitted if separated and gain >= policy.two_mode_bic_gain else None


def _fit(y: Floats) -> TwoModes:
    low, high = (float(q) for q in np.quantile(y, [0.1, 0.9]))
    modes = TwoModes(low, high, float(np.std(y)) / 2.0, 0.5)
    smallest = 1e-3 * float(np.std(y))
    for _ in range(ROUNDS):
        density = _densities(y, modes)
        share = density[1] / density.sum(axis=0)
        weight = float(share.sum())
        if not 1.0 <= weight <= len(y) - 1.0:
            break
        high = float(share @ y) / weight
        low = float((1.0 - share) @ y) / (len(y) - weight)
        squares = share @ np.square(y - high) + (1.0 - share) @ np.square(y - low)
        modes = TwoModes(low, high, max(math.sqrt(float(squares) / len(y)), smallest), weight / len(y))
    return modes


def _densities(y: Floats, modes: TwoModes) -> Floats:
    """Weighted densities of both modes at every point, shape (2, points); never quite 0."""
    shares = np.array([[1.0 - modes.high_share], [modes.high_share]])
    centres = np.array([[modes.low], [modes.high]])
    z = (y - centres) / modes.deviation
    result: Floats = shares * np.exp(-0.5 * z * z) / (modes.deviation * math.sqrt(2.0 * math.pi))
    return np.maximum(result, np.finfo(np.float64).tiny)


def is_flip(y: Floats, start: int, policy: HistoryPolicy) -> bool:
    """True where the step at `start` of a series `y` only goes from one of its two modes to the other, and
    the series had gone back and forth before: its state changed again, nothing else did.

    `y` ends with the level that the step leads to.
    """
    modes = two_modes(y, policy)
    if modes is None:
        return False
    middle = (modes.low + modes.high) / 2.0
    if (np.median(y[:start][-policy.minimum_segment :]) > middle) == (np.median(y[start:]) > middle):
        return False
    beyond = policy.two_mode_separation * modes.deviation
    if not modes.low - beyond <= np.median(y[start:]) <= modes.high + beyond:
        return False
    return (
        _was_in_both(y[:start], y[start:], policy)
        or _visits(y > middle, policy.minimum_segment) >= policy.two_mode_visits
    )


def _was_in_both(before: Floats, after: Floats, policy: HistoryPolicy) -> bool:
    """Whether the points `before` went back and forth between two modes by themselves, if only for a few
    points at a time, and nearly all those `after` lie in one of the two.
    """
    modes = two_modes(before, policy)
    if modes is None:
        return False
    middle = (modes.low + modes.high) / 2.0
    if _visits(before > middle, SHORT_VISIT) < policy.two_mode_visits:
        return False
    away = np.minimum(np.abs(after - modes.low), np.abs(after - modes.high))
    return float(np.mean(away <= policy.two_mode_reach * modes.deviation)) >= policy.two_mode_within


def _visits(high: Bools, shortest: int) -> int:
    """How many stretches of at least `shortest` points the series spent in one state, by turns."""
    smooth = ndimage.median_filter(high.astype(np.uint8), size=shortest, mode="nearest")
    edges = np.flatnonzero(np.diff(smooth)) + 1
    lengths = np.diff(np.concatenate(([0], edges, [len(smooth)])))
    states = smooth[np.concatenate(([0], edges))][lengths >= shortest]
    return int(np.count_nonzero(np.diff(states))) + 1 if len(states) else 0
