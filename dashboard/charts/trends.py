"""A figure of one workload over time or over builds: a line, a band and marks per strategy."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import altair as alt
import pandas as pd

from compilewatch.dashboard.charts import annotation_marks, change_points, style, target_lines, trend_rows
from compilewatch.dashboard.charts.style import log_ticks
from compilewatch.dashboard.charts.trend_rows import Window
from compilewatch.db.columns.column import Column
from compilewatch.db.columns.metrics import METRICS

# A shorter time axis tells the hour as well.
_WITH_HOURS = timedelta(days=4)
_MARK_PX2, _DENSE_MARK_PX2, _PICKED_PX2 = 85, 18, 220
# What the name of a build takes side by side, and how many have room on a phone where they are slanted.
_BUILD_PX, _MOST_BUILD_NAMES = 100, 12
# What a logarithmic axis has below the least value and above the largest, as a factor.
_LOG_AIR = 1.15

# Lines and bands end where a point has no number.
_STRETCH = alt.Detail("stretch:N")


@lru_cache(maxsize=128)
def spec(
    metric: str,
    *,
    axis: str,
    scale: str,
    strategies: tuple[str, ...],
    builds: tuple[str, ...],
    shown: Window,
    frames: tuple[str, ...] = ("main", "events"),
) -> style.Spec:
    """The chart over `frames`: over `main` and `events`, over `targets` where it has budgets to draw, over
    `changes` where the level changed, and over `annotations` where somebody wrote some.

    `builds` are what the version axis shows, in its order.
    """
    figure = METRICS[metric]
    log = scale == "log"
    low, high = _ends(scale, shown)
    values = alt.Scale(type="log" if log else "linear", domain=[low, high], nice=not log)
    ticks = {"values": log_ticks(low, high)} if log else {"tickCount": 6}
    x, y = _x(axis, builds, shown), _y(metric, values, ticks)
    base = alt.Chart(style.data("main"))
    line = base.mark_line(strokeWidth=2.2, aria=False).encode(
        x=x,
        y=y,
        color=style.strategy_colour(strategies),
        strokeDash=style.strategy_dash(strategies),
        detail=_STRETCH,
    )
    spread = _spread(base, x, values, strategies, whiskers=not shown.dense)
    size = _DENSE_MARK_PX2 if shown.dense else _MARK_PX2
    points = _points(base, (x, y), figure, strategies, size_px2=size)
    marked = (change_points.rings(axis), change_points.labels(axis)) if "changes" in frames else None
    layers = [*spread, line, marked[0], *points, *marked[1]] if marked else [*spread, line, *points]
    if trend_rows.is_ratio(metric) and shown.low <= 1 <= shown.high:
        layers = [style.level(1, values), *layers]
    if "targets" in frames:
        layers = [*target_lines.layers(), *layers]
    if axis == "time":
        layers = [*_event_layers(), *layers]
    if "annotations" in frames:
        layers = [*layers, *annotation_marks.layers(axis)]
    return style.spec_of(alt.layer(*layers).properties(height=style.HEIGHT))


def frames_of(rows: pd.DataFrame, events: pd.DataFrame, **marks: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What `spec` draws by name, of the `marks` those that have a row."""
    return {"main": rows, "events": events, **{name: each for name, each in marks.items() if len(each)}}


def _ends(scale: str, shown: Window) -> tuple[float, float]:
    """Of the value axis; a logarithmic one has no place for 0, nor for much below the least value."""
    if scale != "log":
        return shown.low, shown.high
    least = shown.least or shown.high / 10
    return float(f"{max(shown.low, least / _LOG_AIR):.3g}"), shown.high


def _x(axis: str, builds: tuple[str, ...], shown: Window) -> alt.X:
    """Time, or builds in the order of their versions."""
    if axis == "time":
        time_format = "%d %b %H:%M" if shown.last - shown.first < _WITH_HOURS else "%d %b"
        return alt.X(
            "at:T",
            title="Time of the run (UTC)",
            scale=alt.Scale(domain=[_moment(shown.first), _moment(shown.last)]),
            axis=alt.Axis(grid=False, tickCount=6, format=time_format),
        )
    return alt.X(
        "build:O",
        sort=list(builds),
        scale=alt.Scale(domain=list(builds)),
        title="Build, in order of versions",
        axis=_names_below(len(builds)),
    )


def _names_below(builds: int) -> alt.Axis:
    """Names of builds, slanted where they have no room side by side; of many some are left out. On a phone
    they stand upright: a slanted one reaches to the left, and the legend would be cut at the right.
    """
    slanted = f"width < {_BUILD_PX * builds}"
    return alt.Axis(
        labelAngle=alt.ExprRef(expr=f"{slanted} ? (width < {style.PHONE_PX} ? -90 : -40) : 0"),
        labelAlign=alt.ExprRef(expr=f"{slanted} ? 'right' : 'center'"),
        labelBaseline=alt.ExprRef(expr=f"{slanted} ? 'middle' : 'top'"),
        labelOverlap=builds > _MOST_BUILD_NAMES,
        labelLimit=140,
        grid=False,
    )


def _y(metric: str, values: alt.Scale, ticks: dict[str, Any]) -> alt.Y:
    figure = METRICS[metric]
    steps = metric == "break_even"
    return alt.Y(
        "value:Q",
        title=f"{figure.name} ({figure.axis_unit})",
        scale=values,
        axis=style.steps_axis(**ticks) if steps else alt.Axis(format=",~f", **ticks),
    )


def _spread(
    base: alt.Chart, x: alt.X, values: alt.Scale, strategies: tuple[str, ...], *, whiskers: bool
) -> list[alt.Chart]:
    """From `low` to `high`: a band, and a whisker at each point, since a point alone has no band."""
    ends: dict[str, Any] = {
        "x": x,
        "y": alt.Y("low:Q", scale=values),
        "y2": "high",
        "color": style.strategy_colour(strategies),
    }
    band = base.mark_area(opacity=style.BAND_OPACITY, aria=False).encode(**ends, detail=_STRETCH)
    if not whiskers:
        return [band]
    return [band, base.mark_rule(opacity=0.5, strokeWidth=2, aria=False).encode(**ends)]


def _points(
    base: alt.Chart,
    at: tuple[alt.X, alt.Y],
    figure: Column,
    strategies: tuple[str, ...],
    *,
    size_px2: int,
) -> list[alt.Chart]:
    """Filled marks, and hollow ones for what is suspect or a first look; a click picks either."""
    chosen = style.pick("workload", "strategy", "run_id")
    x, y = at
    layers = []
    for sign, filled in (("==", True), ("!=", False)):
        mark = base.transform_filter(f"datum.state {sign} 'trusted'").mark_point(
            filled=filled, strokeWidth=2, opacity=1, cursor="pointer"
        )
        layers.append(
            mark.encode(
                x=x,
                y=y,
                color=style.strategy_colour(strategies),
                shape=style.strategy_shape(strategies),
                size=alt.condition(chosen, alt.value(_PICKED_PX2), alt.value(size_px2)),
                tooltip=style.text_tooltip(
                    strategy="Strategy",
                    value_text=figure.name,
                    interval_text="95 % interval",
                    trials_text="Trials (n)",
                    build="Build",
                    when_text="Run",
                    timing_text="Timing",
                    state="Measurement",
                ),
            )
        )
    layers[0] = layers[0].add_params(chosen)
    return layers


def _event_layers() -> list[alt.Chart]:
    base = style.inked("events")
    at = alt.X("at:T")
    tooltip = style.text_tooltip(detail="Build changed", cause="Reading")
    rules = base.mark_rule(strokeDash=[4, 4], strokeWidth=1.2, opacity=0.55).encode(
        x=at, tooltip=tooltip, stroke=style.ink_stroke()
    )
    labels = []
    # Empty, not transparent: what nobody sees takes its room too, and the legend loses its top.
    wide_only = alt.ExprRef(expr=f"width < {style.PHONE_PX} ? '' : datum.label")
    for cause, font in (("one cause", "normal"), ("confounded", "italic")):
        mark = base.transform_filter(f"datum.cause == '{cause}'").mark_text(
            align="left", baseline="top", dx=4, fontSize=12, fontStyle=font, opacity=0.95, text=wide_only
        )
        labels.append(
            mark.encode(
                x=at,
                y=alt.value(0),
                fill=style.ink_fill(),
                tooltip=tooltip,
            )
        )
    return [rules, *labels]


def _moment(value: datetime) -> alt.DateTime:
    return alt.DateTime(
        year=value.year, month=value.month, date=value.day, hours=value.hour, minutes=value.minute
    )
