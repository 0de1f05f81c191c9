"""Small histories in the rows of a table."""

from __future__ import annotations

import re
from urllib.parse import unquote

from compilewatch.dashboard.charts.sparklines import picture


def test_a_line_goes_up_where_values_do_and_its_last_point_is_marked() -> None:
    drawn = unquote(picture([1.0, 1.0, 3.0], "#D55E00"))
    points = [tuple(map(float, each.split(","))) for each in re.findall(r"[\d.]+,[\d.]+", drawn)]
    across, heights = zip(*points, strict=True)
    assert list(across) == sorted(across)
    assert heights[0] == heights[1] > heights[2], "0 is at the top of a picture"
    assert f'cx="{across[2]:.1f}" cy="{heights[2]:.1f}" r="3" fill="#D55E00"' in drawn
    assert picture([1.0, 1.0, 1.0], "#D55E00"), "a flat line is one"
    assert picture([1.0], "#D55E00") == "", "a single run is no history"
