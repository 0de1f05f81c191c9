"""Names beside points: a name is taken for that of the point that it is nearest to."""

from __future__ import annotations

import math

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.dashboard.charts.point_names import placed

POINTS = st.lists(st.tuples(st.integers(0, 250), st.integers(0, 300)), min_size=1, max_size=8, unique=True)


def _named(points: list[tuple[int, int]], names: list[str]) -> pd.DataFrame:
    return placed(pd.DataFrame({"workload": names}), points, (), 250)


def _box(point: tuple[int, int], name: str, place: str) -> tuple[float, float, float, float]:
    """What the name covers, by the sizes that the module gives to letters and lines."""
    dx, dy, align = place.split()
    width = 6.2 * len(name)
    left = point[0] + int(dx) - {"left": 0.0, "center": width / 2, "right": width}[align]
    return left, point[1] + int(dy) - 7, left + width, point[1] + int(dy) + 7


def _away(box: tuple[float, float, float, float], point: tuple[int, int]) -> float:
    (left, top, right, bottom), (x, y) = box, point
    return math.hypot(max(left - x, x - right, 0), max(top - y, y - bottom, 0))


@given(POINTS)
def test_no_name_stands_nearer_to_another_point(points: list[tuple[int, int]]) -> None:
    names = [f"workload-{number}" for number in range(len(points))]
    for row, each in _named(points, names).iterrows():
        own = points[int(str(row))]
        box = _box(own, each["workload"], each["place"])
        assert _away(box, own) <= min(_away(box, point) for point in points) + 1e-9


def test_a_name_left_of_its_point_does_not_hang_over_its_neighbour() -> None:
    """At the edge of a phone's chart there is room on the left alone, where another point is."""
    found = _named([(245, 20), (215, 22)], ["sd-unet", "bert-base-train"])
    assert list(found["workload"]) == ["bert-base-train"]


def test_a_point_alone_has_its_name_above_it() -> None:
    assert list(_named([(120, 100)], ["mlp"])["place"]) == ["0 -13 center"]
