"""Names beside points: each where it covers no other and no mark, for a wide chart and for a phone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import altair as alt
import pandas as pd

from compilewatch.dashboard.charts import style

Box = tuple[float, float, float, float]
WIDTHS_PX = {"names": 760, "names_narrow": 250}
"""The width of the chart at least, by the frame that holds the names drawn there."""
# What a letter and a line of a name take, and half a point, in pixels.
_LETTER_PX, _LINE_PX, _POINT_PX = 6.2, 14, 6
# Where a name may stand beside its point: offsets in pixels, and which end of it stands there.
_PLACES: tuple[tuple[int, int, Literal["center", "left", "right"]], ...] = (
    (0, -13, "center"),
    (9, -11, "left"),
    (-9, -11, "right"),
    (0, 14, "center"),
    (9, 11, "left"),
    (-9, 11, "right"),
    (10, 0, "left"),
    (-10, 0, "right"),
)


def placed(
    rows: pd.DataFrame, points: Sequence[tuple[float, float]], marks: Iterable[Box], width_px: float
) -> pd.DataFrame:
    """Those of `rows` whose name, `workload`, finds room in a chart of that width, with their `place`.

    `points` are where they stand, from the left and from the top, and `marks` what names may not cover beside
    them. The highest choose first: above their point, right or left of it, or below.
    """
    taken = [(x - _POINT_PX, y - _POINT_PX, x + _POINT_PX, y + _POINT_PX) for x, y in points]
    taken += marks
    places: list[tuple[int, str]] = []
    for row in sorted(range(len(rows)), key=lambda row: points[row][1]):
        width = _LETTER_PX * len(rows["workload"].iloc[row])
        begins = {"center": -width / 2, "left": 0.0, "right": -width}
        for dx, dy, align in _PLACES:
            x, y = points[row][0] + dx + begins[align], points[row][1] + dy
            box = (x, y - _LINE_PX / 2, x + width, y + _LINE_PX / 2)
            fits = box[0] >= 0 and box[2] <= width_px and not any(_meet(box, other) for other in taken)
            if fits and _is_nearest(box, points, row):
                taken.append(box)
                places.append((row, f"{dx} {dy} {align}"))
                break
    return rows.iloc[[row for row, _ in places]].assign(place=[place for _, place in places])


def _is_nearest(box: Box, points: Sequence[tuple[float, float]], row: int) -> bool:
    """Whether no other point lies nearer to the name: it would seem to be the other's."""

    def away(point: tuple[float, float]) -> float:
        x, y = point
        return math.hypot(max(box[0] - x, x - box[2], 0), max(box[1] - y, y - box[3], 0))

    return away(points[row]) <= min(map(away, points))


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def layers(x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Texts over the frames of `WIDTHS_PX`, of which a chart shows those that its width has room for."""
    narrow = f"width < {style.PHONE_PX}"
    shown = {"names": f"{narrow} ? 0 : 1", "names_narrow": f"{narrow} ? 1 : 0"}
    return [
        style.inked(name)
        .transform_filter(f"datum.place == '{dx} {dy} {align}'")
        .mark_text(
            align=align,
            baseline="middle",
            dx=dx,
            dy=dy,
            fontSize=12,
            aria=False,
            opacity=alt.ExprRef(expr=shown[name]),
        )
        .encode(x=x, y=y, text="workload:N", fill=style.ink_fill())
        for name in WIDTHS_PX
        for dx, dy, align in _PLACES
    ]
