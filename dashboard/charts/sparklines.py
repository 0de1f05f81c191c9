"""Small histories in the rows of a table: drawn so that noise looks like noise, or the last point marked."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from urllib.parse import quote

import pandas as pd

from compilewatch.dashboard.text import theme

# A history that strays less than this from its median is as good as flat.
_FLATTEST = 0.1

EXPLAINED = "Against its own median; all rows are drawn to one scale."


def relative(histories: Iterable[Sequence[float]]) -> tuple[pd.Series, float]:
    """Each history as shares of its own median, and how far from 1 a drawing of all must reach."""
    shares = [_of_median(history) for history in histories]
    strays = [abs(end - 1) for history in shares if history for end in (min(history), max(history))]
    return pd.Series(shares, dtype=object), max([_FLATTEST, *strays]) * 1.05


def _of_median(history: Sequence[float]) -> list[float]:
    middle = statistics.median(history) if len(history) > 1 else 0.0  # one run is no history
    return [value / middle for value in history] if middle else []


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
