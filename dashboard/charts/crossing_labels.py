"""Where the labels of crossings stand: beside their marks, within the chart and off the rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import altair as alt
import pandas as pd

from dashboard.charts import style

Mark = dict[str, object]
_COLUMNS = ["strategy", "steps", "total", "label", "says", "side", "place", "near", "rule"]


def placed(marks: Sequence[Mark], wanted: int, last: int, *, log: bool) -> pd.DataFrame:
    """`marks` by steps, each with the side its label would stand on: neighbours would write over each other.

    In shares of an axis that ends at `last` are `place` of the mark, `near`, how far its nearest neighbour is
    from it (1 for a single one), and `rule`, at the steps `wanted`, above 1 where the axis ends before it.
    """
    rule = share(wanted, last, log=log)
    ordered = sorted((int(str(mark["steps"])), place) for place, mark in enumerate(marks))
    places = [share(steps, last, log=log) for steps, _ in ordered]
    gaps = [1.0, *(after - before for before, after in pairwise(places)), 1.0]
    rows = [
        {
            **marks[number],
            "side": "left" if nth % 2 == 0 and len(marks) > 1 else "right",
            "place": places[nth],
            "near": min(gaps[nth : nth + 2]),
            "rule": rule,
        }
        for nth, (_, number) in enumerate(ordered)
    ]
    return pd.DataFrame(rows, columns=_COLUMNS)


def share(steps: int, last: int, *, log: bool) -> float:
    """How far along an axis that ends at `last` these steps are: 0 to 1 on it."""
    return math.log(steps) / math.log(last) if log else steps / last


# Decided as the chart is drawn: on a phone it has a quarter of the width.
_AT, _RULE = "datum.place * width", "datum.rule * width"
_GAP_PX = 9
_END = f"({_GAP_PX} + 7 * length(datum.label))"
_FITS = {"left": f"{_AT} - {_END} > 0", "right": f"{_AT} + {_END} < width"}
_MEETS_RULE = {
    "left": f"inrange({_RULE}, [{_AT} - {_END}, {_AT} - {_GAP_PX} + 2])",
    "right": f"inrange({_RULE}, [{_AT} + {_GAP_PX} - 2, {_AT} + {_END}])",
}


def _stays(side: str, other: str) -> str:
    """Whether a label stands on its own side: it is free there, or not on the other one, where a close
    neighbour has its own: two labels on each other cannot be read at all.
    """
    free, other_free = (f"({_FITS[each]} && !{_MEETS_RULE[each]})" for each in (side, other))
    return f"({free} || !({other_free} && datum.near * width > {_END}))"


_STANDS = (
    f"datum.side == 'left' ? ({_stays('left', 'right')} ? 'left' : 'right')"
    f" : ({_stays('right', 'left')} ? 'right' : 'left')"
)


def layers(base: alt.Chart, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """The labels over the frame of `placed` as texts; `x` and `y` are those of the marks."""
    places: tuple[tuple[str, Literal["left", "right"], Literal["top", "bottom"], int], ...] = (
        ("right", "left", "top", 1),
        ("left", "right", "bottom", -1),
    )
    return [
        base.transform_calculate(stands=_STANDS)
        .transform_filter(f"datum.stands == '{side}'")
        .mark_text(
            align=align,
            baseline=baseline,
            dx=sign * _GAP_PX,
            dy=sign * 7,
            fontSize=12,
            fontWeight=600,
            aria=False,
        )
        .encode(x=x, y=y, text=alt.Text("label", type="nominal"), fill=style.ink_fill())
        for side, align, baseline, sign in places
    ]
