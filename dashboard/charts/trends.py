"""A figure of one workload over time or over builds, a line and a band per strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import altair as alt
import pandas as pd

from dashboard import shaping
from dashboard.charts import style
from db import units

MOST_POINTS = 1500
# What the label of a build change takes of the width of the time axis.
_LABEL_SHARE = 0.13


@dataclass(frozen=True)
class Figure:
    """One figure of a case: its columns, its unit on the axis, how it is said, and which way is good.

    `band` are the columns drawn around the line, `interval` those of the 95 % interval, where there is one.
    """

    word: str
    column: str
    band: tuple[str, str]
    interval: tuple[str, str] | None
    divisor: float
    unit: str
    say: Callable[[float], str]
    higher_is_better: bool
    eager_too: bool


def _trial_spread(column: str) -> tuple[str, str]:
    return f"{column}_p10", f"{column}_p90"


FIGURES: dict[str, Figure] = {
    "speedup": Figure(
        word="Speedup",
        column="speedup",
        band=_trial_spread("speedup"),
        interval=("speedup_low", "speedup_high"),
        divisor=1,
        unit="x over eager",
        say=units.ratio,
        higher_is_better=True,
        eager_too=False,
    ),
    "latency": Figure(
        word="Latency",
        column="latency_ns",
        band=_trial_spread("latency_ns"),
        interval=("latency_low_ns", "latency_high_ns"),
        divisor=1e6,
        unit="ms",
        say=units.duration,
        higher_is_better=False,
        eager_too=True,
    ),
    "compile_cost": Figure(
        word="Compile cost",
        column="compile_cost_ns",
        band=_trial_spread("compile_cost_ns"),
        interval=("compile_cost_low_ns", "compile_cost_high_ns"),
        divisor=1e9,
        unit="s",
        say=units.duration,
        higher_is_better=False,
        eager_too=False,
    ),
    "peak_memory": Figure(
        word="Peak memory",
        column="peak_bytes",
        band=_trial_spread("peak_bytes"),
        interval=None,
        divisor=2**20,
        unit="MiB",
        say=units.size,
        higher_is_better=False,
        eager_too=True,
    ),
    "break_even": Figure(
        word="Break-even",
        column="break_even_steps",
        band=("break_even_low", "break_even_high"),
        interval=("break_even_low", "break_even_high"),
        divisor=1,
        unit="steps",
        say=units.steps,
        higher_is_better=False,
        eager_too=False,
    ),
}


def frame(points: pd.DataFrame, metric: str, build_names: Mapping[str, str]) -> pd.DataFrame:
    """Points of one workload as chart rows: `at`, `build`, `strategy`, `value`, `low`, `high` and texts.

    `points` are rows of `db.metrics.trend.series_points`. Rows without the figure are left out; the page says
    which they are.
    """
    figure = FIGURES[metric]
    rows = points[points[figure.column].notna()]
    if not figure.eager_too:
        rows = rows[rows["strategy"] != "eager"]
    rows = rows.tail(MOST_POINTS)
    value = rows[figure.column].astype(float) / figure.divisor
    low, high = (_end(rows[column], figure.divisor, value) for column in figure.band)
    return pd.DataFrame(
        {
            "at": rows["last_started_at"].dt.tz_localize(None),
            "build": rows["build_id"].map(dict(build_names)),
            "strategy": rows["strategy"],
            "value": value,
            "low": low,
            "high": high,
            "suspect": rows["point_suspect"].map({True: "suspect", False: "trusted"}),
            "value_text": [figure.say(item) for item in rows[figure.column]],
            "interval_text": _interval_texts(rows, figure),
            "when_text": [units.moment(moment) for moment in rows["last_started_at"]],
            "trials_text": [units.count(item) for item in rows["counted_trials"]],
            "run_id": rows["run_id"],
            "workload": rows["workload"],
        }
    )


def _end(column: pd.Series, divisor: float, otherwise: pd.Series) -> pd.Series:
    return (column.astype("Float64") / divisor).fillna(otherwise).astype(float)


def _interval_texts(rows: pd.DataFrame, figure: Figure) -> list[str]:
    if figure.interval is None:
        return [units.MISSING] * len(rows)
    pairs = zip(*(rows[column] for column in figure.interval), strict=True)
    return [units.interval(low, high, figure.say) for low, high in pairs]


def events(points: pd.DataFrame) -> pd.DataFrame:
    """Where the build changed from one run to the next: `at`, `label`, `detail`, `cause`.

    `cause` is `confounded` where several components changed at once that could each be the reason.
    """
    runs = shaping.row_dicts(points.drop_duplicates(["run_id", "build_id"]).sort_values("last_started_at"))
    found: list[dict[str, Any]] = []
    for before, after in pairwise(runs):
        if before["build_id"] == after["build_id"]:
            continue
        changes = shaping.build_changes(before, after)
        several = shaping.confounded(changes)
        label = f"{changes[0].component} {changes[0].after}" if changes else "settings"
        found.append(
            {
                "at": after["last_started_at"].tz_localize(None),
                "label": f"{label} + {len(changes) - 1} more" if several else label,
                "detail": "; ".join(str(change) for change in changes) or "settings or packages",
                "cause": "confounded" if several else "one cause",
            }
        )
    return _spaced(pd.DataFrame(found, columns=["at", "label", "detail", "cause"]), points)


def _spaced(changes: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """`changes` without the labels that would be written over each other; their rules and tooltips stay."""
    if changes.empty:
        return changes
    needed = (points["last_started_at"].max() - points["last_started_at"].min()) * _LABEL_SHARE
    shown: list[str] = []
    free_from = changes["at"].min()
    for change in shaping.row_dicts(changes):
        fits = change["at"] >= free_from
        shown.append(change["label"] if fits else "")
        if fits:
            free_from = change["at"] + needed
    return changes.assign(label=shown)


@lru_cache(maxsize=128)
def spec(
    metric: str, axis: str, scale: str, strategies: tuple[str, ...], builds: tuple[str, ...]
) -> style.Spec:
    """The chart over the frames `main` and `events`. `builds` is the order of the version axis."""
    figure = FIGURES[metric]
    if axis == "time":
        x = alt.X(
            "at", type="temporal", title="Time of the run (UTC)", axis=alt.Axis(grid=False, tickCount=6)
        )
    else:
        x = alt.X(
            "build",
            type="ordinal",
            sort=list(builds),
            title="Build, in order of versions",
            axis=alt.Axis(labelAngle=-30 if len(builds) > 4 else 0, labelLimit=140, grid=False),
        )
    y_scale = alt.Scale(type="log") if scale == "log" else alt.Scale(zero=False, nice=True, padding=12)
    y_axis = style.steps_axis(tickCount=6) if metric == "break_even" else alt.Axis(tickCount=6, format="~g")
    y = alt.Y(
        "value", type="quantitative", title=f"{figure.word} ({figure.unit})", scale=y_scale, axis=y_axis
    )
    colour = style.strategy_colour(strategies)
    base = alt.Chart(style.data("main"))
    band = base.mark_area(opacity=style.BAND_OPACITY, aria=False).encode(
        x=x, y=alt.Y("low", type="quantitative", scale=y_scale), y2="high", color=colour
    )
    whiskers = base.mark_rule(opacity=0.5, strokeWidth=2, aria=False).encode(
        x=x, y=alt.Y("low", type="quantitative", scale=y_scale), y2="high", color=colour
    )
    line = base.mark_line(strokeWidth=2.2, aria=False).encode(
        x=x, y=y, color=colour, strokeDash=style.strategy_dash(strategies)
    )
    points = _points(base, x, y, figure, strategies)
    layers = [band, whiskers, line, *points]
    if axis == "time":
        layers = [*_event_layers(), *layers]
    return style.spec_of(alt.layer(*layers).properties(height=style.HEIGHT))


def _points(
    base: alt.Chart, x: alt.X, y: alt.Y, figure: Figure, strategies: tuple[str, ...]
) -> list[alt.Chart]:
    """Filled marks, and hollow ones for suspect measurements; a click picks either."""
    chosen = style.pick("workload", "strategy", "run_id")
    layers = []
    for state, filled in (("trusted", True), ("suspect", False)):
        mark = base.transform_filter(f"datum.suspect == '{state}'").mark_point(
            filled=filled, strokeWidth=2, opacity=1, cursor="pointer"
        )
        layers.append(
            mark.encode(
                x=x,
                y=y,
                color=style.strategy_colour(strategies),
                shape=style.strategy_shape(strategies),
                size=alt.condition(chosen, alt.value(220), alt.value(85)),
                tooltip=style.text_tooltip(
                    strategy="Strategy",
                    value_text=figure.word,
                    interval_text="95 % interval",
                    trials_text="Trials (n)",
                    build="Build",
                    when_text="Run",
                    suspect="Measurement",
                ),
            )
        )
    layers[0] = layers[0].add_params(chosen)
    return layers


def _event_layers() -> list[alt.Chart]:
    base = style.inked("events")
    at = alt.X("at", type="temporal")
    tooltip = style.text_tooltip(detail="Build changed", cause="Reading")
    rules = base.mark_rule(strokeDash=[4, 4], strokeWidth=1.2, opacity=0.55).encode(
        x=at, tooltip=tooltip, stroke=style.ink_stroke()
    )
    labels = []
    wide_only = alt.ExprRef(expr=f"width < {style.PHONE_PX} ? 0 : 0.95")
    for cause, font in (("one cause", "normal"), ("confounded", "italic")):
        mark = base.transform_filter(f"datum.cause == '{cause}'").mark_text(
            align="left", baseline="top", dx=4, fontSize=11, fontStyle=font, opacity=wide_only
        )
        labels.append(
            mark.encode(
                x=at,
                y=alt.value(0),
                text=alt.Text("label", type="nominal"),
                fill=style.ink_fill(),
                tooltip=tooltip,
            )
        )
    return [rules, *labels]


def finding(rows: pd.DataFrame, metric: str, workload: str) -> str:
    """The newest value of the leading strategy and how it moved since the point before."""
    figure = FIGURES[metric]
    if rows.empty:
        return f"No {figure.word.lower()} of {workload} is known"
    compiled = rows[rows["strategy"] != "eager"]
    rows = compiled if not compiled.empty else rows
    last = rows.groupby("strategy").tail(1)
    leading = last.sort_values("value", ascending=not figure.higher_is_better).iloc[0]
    text = f"{leading['strategy']} on {workload}: {figure.word.lower()} {leading['value_text']}"
    earlier = rows[(rows["strategy"] == leading["strategy"]) & (rows["at"] < leading["at"])]
    if earlier.empty:
        return text
    before = earlier.iloc[-1]
    change = leading["value"] / before["value"] - 1 if before["value"] else 0.0
    return f"{text}, {units.percent(change, signed=True)} since the run before"
