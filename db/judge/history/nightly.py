"""What the newest night of a series announces: strong evidence at once, weaker evidence when it lasts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compilewatch.db.judge.change_points import (
    Boundary,
    boundaries,
    candidates,
    examine_boundary,
    robust_deviation,
    standing_boundaries,
    stands,
)
from compilewatch.db.judge.policy import HistoryPolicy
from compilewatch.db.metrics.groups import Floats

SAME_PLACE = 3
"""Points by which a boundary may move from one night to the next and still be the same one."""


@dataclass(frozen=True)
class NightlyBoundaries:
    """Boundaries of a series up to its newest night: `strong` ones pass `nightly_p_value`, all of `standing`
    pass `lasting_p_value`, and those of them at the starts `lasting` did so for `lasting_nights` nights.
    """

    strong: list[Boundary]
    standing: list[Boundary]
    lasting: frozenset[int]


def nightly_boundaries(y: Floats, policy: HistoryPolicy) -> NightlyBoundaries:
    """Boundaries in the log values `y`, judged as of the last one."""
    starts = candidates(y[None], policy)
    strict, lenient = policy.at(policy.nightly_p_value), policy.at(policy.lasting_p_value)
    strong = _placed(y, standing_boundaries(y[None], starts, strict)[0], strict)
    (standing,) = standing_boundaries(y[None], starts, lenient)
    recent = [
        each.start
        for each in standing
        if len(y) - each.start <= policy.points_per_side
        and all(abs(each.start - other.start) > policy.quiet_points for other in strong)
    ]
    for night in range(1, policy.lasting_nights if recent else 0):
        then = [each.start for each in boundaries(y[:-night], lenient)]
        recent = [start for start in recent if any(abs(start - other) <= SAME_PLACE for other in then)]
    placed = _placed(y, standing, lenient)
    lasting = [new.start for old, new in zip(standing, placed, strict=True) if old.start in recent]
    return NightlyBoundaries(strong, placed, frozenset(lasting))


def _placed(y: Floats, boundaries: list[Boundary], policy: HistoryPolicy) -> list[Boundary]:
    """Every boundary where its two levels meet best, if ranks agree that it stands there more clearly."""
    placed: list[Boundary] = []
    edges = [*(each.start for each in boundaries), len(y)]
    for boundary, right in zip(boundaries, edges[1:], strict=True):
        left = placed[-1].start if placed else 0
        start = _meeting_point(y, left, boundary.start, right, policy)
        moved = examine_boundary(y, left, start, right, policy)
        better = moved.p_here < boundary.p_here and stands(moved, policy)
        placed.append(moved if better else boundary)
    return placed


def _meeting_point(y: Floats, left: int, start: int, right: int, policy: HistoryPolicy) -> int:
    """The split of the points from `left` up to `right` that leaves the smallest sum of squares, where points
    farther than a deviation beyond both levels count as that far: outliers do not move it.
    """
    before, after = y[left:start], y[start:right]
    levels = float(np.median(before)), float(np.median(after))
    deviation = robust_deviation(np.concatenate([before - levels[0], after - levels[1]]))
    near = np.clip(y[left:right], min(levels) - deviation, max(levels) + deviation)
    n, shortest = len(near), policy.minimum_segment
    if n < 2 * shortest:
        return start
    size = np.arange(shortest, n - shortest + 1)
    total = np.cumsum(near)
    step = total[size - 1] / size - (total[-1] - total[size - 1]) / (n - size)
    return left + int(size[np.argmax(step * step * size * (n - size))])
