"""Speedup of every case as a point with its interval."""

from __future__ import annotations

from functools import lru_cache

import altair as alt
import pandas as pd

from compilewatch.dashboard.charts import style
from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.parts.parts import Chart
from compilewatch.dashboard.text import theme
from compilewatch.db import units
from compilewatch.db.records.strategies import EAGER

_ROW, _LANE = 34, 14
# Rows of many workloads move together: what stands below the chart is not screens away, and names still fit.
_TALLEST, _LOWEST_ROW = 1000, 22
_POINT_AREA, _SMALL_POINT_AREA = 95, 50
# What the legend and the axis take of the height.
_AROUND = 110
_OF_CASES = [
    *("workload_label", "strategy", "speedup", "speedup_low", "speedup_high"),
    *("latency_ns", "control_latency_ns", "counted_trials", "first_look"),
]


def speedups_chart(cases: pd.DataFrame, key: str) -> Chart:
    """The compiled ones of `cases` as points, the workload with the largest speedup first."""
    rows = frame(cases)
    title = finding(rows)
    compiled = (cases["strategy"] != EAGER.name).any()
    why = "No compiled case passed." if compiled else "Only eager was measured with this build."
    chart = ChartContent(title, notes=[why])
    if not rows.empty:
        fastest_first = rows.groupby("workload")["speedup"].max().sort_values(ascending=False).index
        looks = tuple(sorted(set(rows["first_look"].astype(bool))))
        drawn = spec(tuple(fastest_first), tuple(theme.ordered(rows["strategy"])), looks)
        chart = ChartContent(title, drawn, {"main": rows, "eager": pd.DataFrame({"speedup": [1.0]})})
    return Chart(
        key,
        "Speedup over eager of every compiled case with its interval",
        chart,
        explained="A point is a case, its bar the 95 % interval. The dotted line is eager.",
    )


def frame(cases: pd.DataFrame) -> pd.DataFrame:
    """Rows of compiled cases that have a speedup, with the texts of the tooltip."""
    # The columns that are looked at, of ninety.
    rows = cases[_OF_CASES][cases["speedup"].notna() & (cases["strategy"] != EAGER.name)]
    lows, highs = rows["speedup_low"].tolist(), rows["speedup_high"].tolist()
    return pd.DataFrame(
        {
            "workload": rows["workload_label"],
            "strategy": rows["strategy"],
            "speedup": rows["speedup"].astype(float),
            "low": rows["speedup_low"].fillna(rows["speedup"]).astype(float),
            "high": rows["speedup_high"].fillna(rows["speedup"]).astype(float),
            "speedup_text": [units.ratio(value) for value in rows["speedup"].tolist()],
            "interval_text": [
                units.interval(low, high, units.ratio, trials=trials)
                for low, high, trials in zip(lows, highs, rows["counted_trials"].tolist(), strict=True)
            ],
            "latency_text": [units.duration(value) for value in rows["latency_ns"].tolist()],
            "eager_text": [units.duration(value) for value in rows["control_latency_ns"].tolist()],
            "trials_text": [units.count(value) for value in rows["counted_trials"].tolist()],
            "is_known": rows["speedup_low"].notna().array,
            "first_look": rows["first_look"].array,
        }
    )


@lru_cache(maxsize=64)
def spec(
    workloads: tuple[str, ...], strategies: tuple[str, ...], looks: tuple[bool, ...] = (False,)
) -> style.Spec:
    """Rows of `workloads` in that order, one point per strategy; the rule at 1 is eager."""
    rows = alt.Y(
        "workload:N",
        sort=list(workloads),
        title=None,
        axis=style.names_axis(grid=True, tickBand="extent", labelOverlap=False),
    )
    lane = alt.YOffset("strategy:N", sort=list(strategies))
    x_axis = alt.Axis(format=".3~g", labelExpr="datum.label + 'x'", tickCount=6, grid=True)
    x = alt.X("low:Q", title="Speedup over eager", axis=x_axis, scale=alt.Scale(zero=False))
    roomy = max(_ROW, _LANE * len(strategies))
    row = max(_LOWEST_ROW, min(roomy, _TALLEST // max(1, len(workloads))))
    point_area = _POINT_AREA if row == roomy else _SMALL_POINT_AREA
    base = alt.Chart(style.data("main"))
    eager = (
        style.inked("eager")
        .mark_rule(strokeDash=[2, 2], strokeWidth=1.5, aria=False)
        .encode(x="speedup:Q", stroke=style.ink_stroke())
    )
    interval = base.mark_rule(strokeWidth=3, opacity=0.45, aria=False).encode(
        x=x,
        x2="high",
        y=rows,
        yOffset=lane,
        color=style.strategy_colour(strategies),
    )
    points = style.points(
        strategies,
        looks,
        point_area,
        x="speedup:Q",
        y=rows,
        yOffset=lane,
        tooltip=style.text_tooltip(
            workload="Workload",
            strategy="Strategy",
            speedup_text="Speedup",
            interval_text="95 % interval",
            latency_text="Latency",
            eager_text="Eager latency",
            trials_text="Trials (n)",
        ),
    )
    height = len(workloads) * row + _AROUND
    layers = alt.layer(eager, interval, *points).properties(height=height)
    return style.spec_of(layers.add_params(style.pick("workload")))


def finding(rows: pd.DataFrame) -> str:
    """What the chart shows, as its title."""
    if rows.empty:
        return "No compiled case has a speedup yet"
    known = rows[rows["is_known"]]
    slower = int((known["high"] < 1).sum())
    text = "No difference from eager is shown"
    if (faster := known[known["low"] > 1]).size:
        best = faster.sort_values("speedup").iloc[-1]
        text = f"{best['strategy']} reaches {units.ratio(best['speedup'])} over eager on {best['workload']}"
    elif slower:
        text = "No case is shown to be faster than eager"
    if slower:
        text += f"; {slower} of {units.plural(len(rows), 'case')} slower than eager"
    return text
