"""Where each of many series of one length changes its level: `db.judge.history.change_points` over all at
once.

Whatever a few points cost numpy is paid once for all series instead of once for each. What is found is the
same to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import special

from db.judge.history.change_points import BLOCK, MAD_TO_SD, Boundary, kernel_candidates, weakest
from db.judge.policy import HistoryPolicy
from db.metrics.groups import Floats, Ints


class Place(NamedTuple):
    """A boundary of the series in row `row`: its segments begin at `left` and `start`, the later one ends
    before `right`.
    """

    row: int
    left: int
    start: int
    right: int


def starts_by_row(points: Floats, policy: HistoryPolicy) -> list[list[int]]:
    """As `db.judge.history.change_points.segment_starts` of every row of `points`."""
    starts = kernel_candidates(points, noise_scales(points), policy)
    known: dict[Place, Boundary] = {}
    undecided = [row for row, found in enumerate(starts) if found]
    while undecided:
        places = {row: _places(row, starts[row], points.shape[1]) for row in undecided}
        unknown = [place for mine in places.values() for place in mine if place not in known]
        known |= zip(unknown, examine_boundaries(points, unknown, policy), strict=True)
        undecided = []
        for row, mine in places.items():
            worst = weakest([known[place] for place in mine], policy)
            if worst is not None:
                starts[row].pop(worst)
                undecided += [row] if starts[row] else []
    return starts


def spread_within(points: Floats, policy: HistoryPolicy) -> list[tuple[float, float]]:
    """Of every row the sum of squares around the levels of its segments, and its degrees of freedom."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for row, found in enumerate(starts_by_row(points, policy)):
        alike.setdefault(tuple(found), []).append(row)
    around, length = np.zeros(len(points)), points.shape[1]
    freedom = np.zeros(len(points))
    for starts, rows in alike.items():
        mine, edges = points[rows], [0, *starts, length]
        around[rows] = sum(_squares(mine[:, i:j]) for i, j in pairwise(edges))
        freedom[rows] = length - 1 - len(starts)
    return list(zip(around.tolist(), freedom.tolist(), strict=True))


def _places(row: int, starts: Sequence[int], length: int) -> list[Place]:
    edges = [0, *starts, length]
    return [Place(row, *ends) for ends in zip(edges, edges[1:], edges[2:], strict=False)]


def noise_scales(points: Floats) -> Floats:
    """As `db.judge.history.change_points.noise_scale` of every row."""
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
    found: Floats = np.add.reduce(off * off, axis=1)
    return found


def examine_boundaries(points: Floats, places: Sequence[Place], policy: HistoryPolicy) -> list[Boundary]:
    """As `db.judge.history.change_points.examine_boundary` of each of the `places`."""
    reach = policy.points_per_side
    alike: dict[tuple[int, int], list[int]] = {}
    for number, place in enumerate(places):
        sides = min(place.start - place.left, reach), min(place.right - place.start, reach)
        alike.setdefault(sides, []).append(number)
    found: dict[int, Boundary] = {}
    for (before, after), numbers in alike.items():
        rows, starts = (
            np.array([getattr(places[number], name) for number in numbers], dtype=np.int64)
            for name in ("row", "start")
        )
        near = points[rows[:, None], starts[:, None] + np.arange(-before, after)]
        found |= zip(
            numbers,
            _boundaries(starts, near[:, :before], near[:, before:], points.shape[1], policy),
            strict=True,
        )
    return [found[number] for number in range(len(places))]


def _boundaries(
    starts: Ints, before: Floats, after: Floats, length: int, policy: HistoryPolicy
) -> Iterable[Boundary]:
    n, m = before.shape[1], after.shape[1]
    rho = _autocorrelations(before, after, policy.autocorrelation_limit)
    widening = np.sqrt((1.0 + rho) / (1.0 - rho))
    difference = _medians(after) - _medians(before)
    spread = np.sqrt((_squares(before) + _squares(after)) / max(n + m - 2, 1))
    p_here = 2.0 * special.ndtr(-np.abs(_mann_whitney_z(before, after) / widening))
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
    residual = np.concatenate(
        [side - side.mean(axis=1)[:, None] for side in (before, after)], axis=1, dtype=np.float64
    )
    # Row by row: the sum of another order of products ends in other bits.
    power = np.array([np.dot(row, row) for row in residual], dtype=np.float64)
    pairs = np.delete(residual[:, 1:] * residual[:, :-1], before.shape[1] - 1, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.add.reduce(pairs, axis=1) / power
    rho: Floats = np.where(power == 0.0, 0.0, np.minimum(np.maximum(share, 0.0), limit))
    return rho


def _mann_whitney_z(before: Floats, after: Floats) -> Floats:
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
