"""What all charts share: scales of strategies, axes, sizes, and the way from an Altair chart to a dict."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import altair as alt
import pandas as pd
from altair.utils.schemapi import disable_debug_mode

from compilewatch.dashboard.text import theme

# Altair holds each part of a chart to the schema as it is made, which is half of making one; tests hold all
# charts to it.
disable_debug_mode()

Spec = dict[str, Any]
HEIGHT = 360
PHONE_PX = 520
NARROW_PX = 220
BAND_OPACITY = 0.16


def spec_of(chart: alt.TopLevelMixin) -> Spec:
    """The Vega-Lite dict of `chart`, without data: frames are handed over by name when it is drawn."""
    spec: Spec = chart.to_dict(validate=False)
    spec["autosize"] = {"type": "fit", "contains": "padding"}
    return spec


def data(name: str) -> alt.NamedData:
    """The frame that is handed over as `name`."""
    return alt.NamedData(name=name)


def _by_strategy(strategies: tuple[str, ...], aspect: str, *, legend: bool = True) -> dict[str, Any]:
    """The encoding of strategies by an `aspect` of their looks (`dashboard.text.theme`)."""
    looks = theme.looks(strategies)
    return {
        "shorthand": "strategy:N",
        "title": None,
        "scale": alt.Scale(
            domain=list(strategies), range=[getattr(looks[name], aspect) for name in strategies]
        ),
        "legend": top_legend() if legend else None,
    }


def strategy_colour(strategies: tuple[str, ...], *, legend: bool = True) -> alt.Color:
    return alt.Color(**_by_strategy(strategies, "colour", legend=legend))


def strategy_shape(strategies: tuple[str, ...], *, legend: bool = True) -> alt.Shape:
    """For points."""
    return alt.Shape(**_by_strategy(strategies, "shape", legend=legend))


def strategy_dash(strategies: tuple[str, ...], *, legend: bool = True) -> alt.StrokeDash:
    """For lines."""
    return alt.StrokeDash(**_by_strategy(strategies, "dash", legend=legend))


def names_axis(**more: Any) -> alt.Axis:
    """An axis of names on the left."""
    return alt.Axis(labelLimit=_LABEL_PX, labelPadding=8, **more)


# About the width of a character of a label; how steep one is that has no room; what is shown of a long one.
_CHARACTER_PX, _STEEP, _LABEL_PX = 6.2, 35, 190


def slanted_px(names: tuple[str, ...]) -> int:
    """What slanted names above a matrix take of its height: on a phone they would leave one row none."""
    longest = min(_LABEL_PX, _CHARACTER_PX * max(map(len, names), default=0))
    return round(longest * math.sin(math.radians(_STEEP)))


def matrix_columns(strategies: tuple[str, ...]) -> alt.X:
    """A column per strategy, names above: slanted where upright ones (about 120 px each) would not fit."""
    narrow = f"width < {120 * len(strategies)}"
    return alt.X(
        "strategy:N",
        sort=list(strategies),
        scale=alt.Scale(domain=list(strategies)),
        title=None,
        axis=alt.Axis(
            orient="top",
            labelAngle=alt.ExprRef(expr=f"{narrow} ? -{_STEEP} : 0"),
            labelAlign=alt.ExprRef(expr=f"{narrow} ? 'left' : 'center'"),
            labelLimit=_LABEL_PX,
            labelPadding=6,
            labelOverlap=False,
        ),
    )


def matrix_rows(workloads: tuple[str, ...]) -> alt.Y:
    """A row per workload."""
    return alt.Y(
        "workload:N",
        sort=list(workloads),
        scale=alt.Scale(domain=list(workloads)),
        title=None,
        axis=names_axis(),
    )


def matrix_spec_of(chart: alt.TopLevelMixin) -> Spec:
    """`spec_of` for cells side by side, without lines between them."""
    spec = spec_of(chart)
    spec["config"] = {"scale": {"bandPaddingInner": 0.06}, "axis": {"grid": False}}
    return spec


def top_legend(columns: int = 5, *, narrow: int = 1) -> alt.Legend:
    """A legend above the chart: `columns` wide, two on a phone, `narrow` where names on the left need room.

    Vega makes room for a legend once, so one that gets longer as the chart is fitted loses its top: words
    that are short and few stay at two.
    """
    fitting = alt.ExprRef(expr=f"width < {NARROW_PX} ? {narrow} : width < {PHONE_PX} ? 2 : {columns}")
    return alt.Legend(
        orient="top", symbolOpacity=1, symbolStrokeWidth=1, columns=fitting, labelLimit=260, offset=6
    )


def steps_axis(**more: Any) -> alt.Axis:
    """An axis of step counts: 500, 5,000, 50k, 5M."""
    words = (
        "datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + 'M' : "
        "datum.value >= 1e4 ? format(datum.value / 1e3, '~g') + 'k' : format(datum.value, ',')"
    )
    return alt.Axis(labelExpr=words, **more)


def inked(name: str) -> alt.Chart:
    """A chart over the frame `name` whose text and rules can be drawn with `ink_fill` and `ink_stroke`."""
    return alt.Chart(data(name)).transform_calculate(ink="'ink'")


def _ink() -> alt.Scale:
    """The theme's first category colour, which is its ink: Vega's own default for text and rules is black."""
    return alt.Scale(domain=["ink"], range="category")


def ink_fill() -> alt.Fill:
    """Fill for text that is readable on light and dark."""
    return alt.Fill("ink:N", scale=_ink(), legend=None)


def ink_stroke() -> alt.Stroke:
    """Stroke for rules and lines that belong to no strategy."""
    return alt.Stroke("ink:N", scale=_ink(), legend=None)


def points(
    strategies: tuple[str, ...],
    looks: tuple[bool, ...],
    size_px2: float,
    *,
    legend: bool = True,
    **encoding: Any,
) -> list[alt.Chart]:
    """Marks over `main` by strategy, filled, and hollow for a first look. `looks` are the values of
    `first_look` that there are: a layer without a point has no axis.
    """
    by_strategy = {
        "color": strategy_colour(strategies, legend=legend),
        "shape": strategy_shape(strategies, legend=legend),
    }
    return [
        alt.Chart(data("main"))
        .transform_filter(f"{'' if hollow else '!'}datum.first_look")
        .mark_point(filled=not hollow, size=size_px2, opacity=1)
        .encode(**by_strategy, **encoding)
        for hollow in looks
    ]


def text_tooltip(**titles: str) -> list[alt.Tooltip]:
    """Tooltip lines from columns that already are text: column -> title."""
    return [alt.Tooltip(column, type="nominal", title=title) for column, title in titles.items()]


def pick(*fields: str) -> alt.Parameter:
    """The selection that a click makes; `dashboard.render.elements.picked` reads it."""
    return alt.selection_point(name="pick", fields=list(fields), empty=False)


# Where a logarithmic axis is labelled: at round numbers, which Vega leaves out as it thins its own.

_MOST = 10
_FEWEST = 3
_TICKS = 4
# The first digits within each power of ten, the finest first.
_LEADS = ((1, 2, 3, 5, 7), (1, 2, 5), (1,))


def log_ticks(low: float, high: float) -> list[float]:
    """Ascending numbers from `low` to `high`, both above 0: 1, 2 and 5 times powers of ten where they are few
    enough, else fewer; within less than such a step evenly spaced ones.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for leads in _LEADS[1:] if high >= 10 * low else _LEADS[:1]:
        ticks = [
            tick
            for exponent in range(first, last + 1)
            for lead in leads
            if low <= (tick := float(f"{lead}e{exponent}")) <= high
        ]
        if len(ticks) <= _MOST:
            return ticks if len(ticks) >= _FEWEST else _even(low, high)
    every = math.ceil((last - first + 1) / _MOST)
    return [tick for n in range(first, last + 1, every) if low <= (tick := float(f"1e{n}")) <= high]


def ticks(low: float, high: float, *, log: bool = False) -> list[float]:
    """Round numbers from `low` to `high`, for an axis whose ends are not round."""
    return log_ticks(low, high) if log else _even(low, high, _TICKS)


def level(value: int, scale: alt.Scale) -> alt.Chart:
    """A line across the chart at `value` of its value axis, which has `scale`; it needs no frame."""
    rule: alt.Chart = (
        alt.Chart(alt.sequence(value, value + 1, 1, as_="level"))
        .transform_calculate(ink="'ink'")
        .mark_rule(strokeWidth=1.2, opacity=0.7, aria=False)
        .encode(y=alt.Y("level:Q", scale=scale), stroke=ink_stroke())
    )
    return rule


def _even(low: float, high: float, fewest: int = _FEWEST) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, a handful of them."""
    exponent = math.floor(math.log10((high - low) / fewest))
    steps = (lead * 10.0**exponent for lead in (5, 2, 1))
    step = next(step for step in steps if (high - low) / step >= fewest)
    return [float(f"{n * step:.9g}") for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


# A chart as it is made once for all who look.


@dataclass(frozen=True)
class ChartContent:
    """What a chart shows, its specification and frames, and what is said below it.

    `spec` is None where there is nothing to draw.
    """

    finding: str
    spec: Spec | None = None
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
