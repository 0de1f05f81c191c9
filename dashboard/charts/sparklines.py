"""Small histories in the rows of a table, their last point marked."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from compilewatch.dashboard.text import theme

_WIDTH_PX, _HEIGHT_PX, _AIR_PX = 112, 24, 4


def picture(values: Sequence[float], colour: str) -> str:
    """A line through `values` on a scale of its own, its last point marked in `colour`, as the address of a
    picture; empty where they are fewer than two.
    """
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    wide, tall = (whole - 2 * _AIR_PX for whole in (_WIDTH_PX, _HEIGHT_PX))
    step, scale = wide / (len(values) - 1), tall / (high - low or 1.0)
    points = [
        f"{_AIR_PX + place * step:.1f},{_AIR_PX + (high - value) * scale:.1f}"
        for place, value in enumerate(values)
    ]
    x, _, y = points[-1].partition(",")
    drawn = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH_PX}" height="{_HEIGHT_PX}">'
        f'<polyline points="{" ".join(points)}" fill="none" stroke="{theme.GREY}" stroke-width="1.5"/>'
        f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/></svg>'
    )
    return f"data:image/svg+xml;utf8,{quote(drawn)}"
