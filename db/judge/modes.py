"""Two-mode series: a machine that is now in one state, now in another, without anything having changed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from compilewatch.db.judge.policy import HistoryPolicy
from compilewatch.db.metrics.groups import Bools, Floats

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
    return two_modes_of_each(y[None, :], policy)[0]


def two_modes_of_each(y: Floats, policy: HistoryPolicy) -> list[TwoModes | None]:
    """The same of many series of one length at once; `y` has shape (series, points)."""
    n = y.shape[1]
    modes: list[TwoModes | None] = [None] * len(y)
    varied = np.ptp(y, axis=1) > 0.0 if n >= 4 * policy.minimum_segment else np.zeros(0, dtype=np.bool_)
    if not varied.any():
        return modes
    y = y[varied]
    fitted = _fit(y)
    one = -n * (np.log(y.std(axis=1)) + 0.5 * math.log(2.0 * math.pi) + 0.5)
    two = np.log(_densities(y, fitted).sum(axis=0)).sum(axis=1)
    gain = 2.0 * (two - one) - 2.0 * math.log(n)  # two parameters more
    clear = np.minimum(fitted.high_share, 1.0 - fitted.high_share) >= policy.two_mode_share
    clear &= fitted.high - fitted.low >= policy.two_mode_separation * fitted.deviation
    clear &= gain >= policy.two_mode_bic_gain
    for place, chosen, *each in zip(np.flatnonzero(varied), clear, *fitted, strict=True):
        if chosen:
            modes[int(place)] = TwoModes(*map(float, each))
    return modes


class _Fitted(NamedTuple):
    """As `TwoModes`, of many series; every array has shape (series,)."""

    low: Floats
    high: Floats
    deviation: Floats
    high_share: Floats


def _fit(y: Floats) -> _Fitted:
    n, spread = y.shape[1], y.std(axis=1)
    low, high = np.quantile(y, [0.1, 0.9], axis=1)
    modes = _Fitted(low, high, spread / 2.0, np.full(len(y), 0.5))
    going = np.ones(len(y), dtype=np.bool_)
    for _ in range(ROUNDS):
        density = _densities(y, modes)
        share = density[1] / density.sum(axis=0)
        weight = share.sum(axis=1)
        going &= (weight >= 1.0) & (weight <= n - 1.0)
        if not going.any():
            break
        with np.errstate(invalid="ignore", divide="ignore"):
            high = (share * y).sum(axis=1) / weight
            low = ((1.0 - share) * y).sum(axis=1) / (n - weight)
            squares = share * np.square(y - high[:, None]) + (1.0 - share) * np.square(y - low[:, None])
        deviation = np.maximum(np.sqrt(squares.sum(axis=1) / n), 1e-3 * spread)
        fitted = (low, high, deviation, weight / n)
        modes = _Fitted(*(np.where(going, *each) for each in zip(fitted, modes, strict=True)))
    return modes


def _densities(y: Floats, modes: _Fitted) -> Floats:
    """Weighted densities of both modes at every point, shape (2, series, points); never quite 0."""
    shares = np.stack([1.0 - modes.high_share, modes.high_share])[:, :, None]
    centres = np.stack([modes.low, modes.high])[:, :, None]
    deviation = modes.deviation[None, :, None]
    z = (y - centres) / deviation
    result: Floats = shares * np.exp(-0.5 * z * z) / (deviation * math.sqrt(2.0 * math.pi))
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
    from scipy import ndimage

    smooth = ndimage.median_filter(high.astype(np.uint8), size=shortest, mode="nearest")
    edges = np.flatnonzero(np.diff(smooth)) + 1
    lengths = np.diff(np.concatenate(([0], edges, [len(smooth)])))
    states = smooth[np.concatenate(([0], edges))][lengths >= shortest]
    return int(np.count_nonzero(np.diff(states))) + 1 if len(states) else 0
