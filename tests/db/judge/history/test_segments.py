"""Many series searched together are searched as each alone, to the bit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from db.judge.history.change_points import examine_boundary, noise_scale, segment_starts, squares
from db.judge.history.segments import Place, examine_boundaries, noise_scales, spread_within, starts_by_row
from db.judge.policy import HistoryPolicy
from db.metrics.groups import Floats

RULES = HistoryPolicy()


def stepped(generator: np.random.Generator, rows: int, length: int) -> Floats:
    """Series with up to three steps, some of them drifting, constant or of few distinct values."""
    points: Floats = generator.normal(0, 10.0 ** generator.integers(-4, 0), (rows, length))
    for row in points:
        for _ in range(generator.integers(0, 4)):
            row[generator.integers(0, length) :] += generator.normal(0, 0.2)
    points[::5] = np.round(points[::5], 2)
    points[1::7] = np.round(points[1::7, :1], 1)
    points[2::7] = np.cumsum(points[2::7], axis=1)
    return points


@pytest.mark.parametrize("length", [1, 2, 5, 7, 9, 10, 15, 30, 64, 130])
def test_series_are_searched_together_as_each_alone(length: int) -> None:
    points = stepped(np.random.default_rng(length), 60, length)
    starts = [segment_starts(row, RULES) for row in points]
    assert starts_by_row(points, RULES) == starts
    assert noise_scales(points).tolist() == [noise_scale(row) for row in points]
    spreads = []
    for row, mine in zip(points, starts, strict=True):
        edges = [0, *mine, length]
        around = sum(squares(row[i:j]) for i, j in pairwise(edges))
        spreads.append((around, length - len(edges) + 1.0))
    assert spread_within(points, RULES) == spreads
    assert any(starts) or length <= 15


def test_boundaries_are_examined_together_as_each_alone() -> None:
    generator = np.random.default_rng(0)
    points = stepped(generator, 60, 150)
    places = [
        Place(int(generator.integers(60)), *sorted(generator.choice(151, 3, replace=False).tolist()))
        for _ in range(2_000)
    ]
    alone = [
        examine_boundary(points[place.row], place.left, place.start, place.right, RULES) for place in places
    ]
    assert examine_boundaries(points, places, RULES) == alone
