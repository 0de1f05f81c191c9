"""Small histories: noise stays small beside a real step, whatever the level of a row."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest

from compilewatch.dashboard.charts.sparklines import picture, relative


def test_rows_of_different_levels_share_one_scale() -> None:
    shares, reach = relative([[100.0, 101.0, 100.0], [2.0, 2.0, 1.0], []])
    assert shares[0] == pytest.approx([1.0, 1.01, 1.0])
    assert shares[1] == pytest.approx([1.0, 1.0, 0.5])
    assert shares[2] == []
    assert 0.5 <= reach < 0.6


def test_noise_alone_does_not_fill_the_height() -> None:
    _, reach = relative([[10.0, 10.1, 9.9]])
    assert reach >= 0.1


def test_a_single_run_is_no_history() -> None:
    shares, _ = relative([[3.0], [1.0, 1.0]])
    assert shares.tolist() == [[], [1.0, 1.0]]


def test_a_line_goes_up_where_values_do_and_its_last_point_is_marked() -> None:
    drawn = unquote(picture([1.0, 1.0, 3.0], "#D55E00"))
    points = [tuple(map(float, each.split(","))) for each in re.findall(r"[\d.]+,[\d.]+", drawn)]
    across, heights = zip(*points, strict=True)
    assert list(across) == sorted(across)
    assert heights[0] == heights[1] > heights[2], "0 is at the top of a picture"
    assert f'cx="{across[2]:.1f}" cy="{heights[2]:.1f}" r="3" fill="#D55E00"' in drawn
    assert picture([1.0, 1.0, 1.0], "#D55E00"), "a flat line is one"
    assert picture([1.0], "#D55E00") == "", "a single run is no history"
