"""Compile cost against speedup, with the front of each workload: what no cheaper strategy outruns."""

from __future__ import annotations

import math
from functools import lru_cache

import altair as alt
import pandas as pd

from dashboard.charts import style
from db import units

_DECADES = [lead * 10**power for power in range(-3, 5) for lead in (1, 2, 5)]
# What a letter takes of the chart's width and a line of its height: nearer labels would overlap.
_LETTER, _LINE = 0.008, 0.07
# Costs that differ by less stand on a linear axis: a logarithmic one would have no marks between them.
_LOG_FROM = 5.0


def front(cases: pd.DataFrame) -> pd.DataFrame:
    """Compile cost (s) against speedup per case; `best`: faster than eager, which costs nothing, and no case
    of the workload is cheaper and as fast.
    """
    rows = cases[(cases["strategy"] != "eager") & cases["speedup"].notna() & cases["compile_cost_ns"].notna()]
    cost = rows["compile_cost_ns"].astype(float) / 1e9
    speedup = rows["speedup"].astype(float)
    table = pd.DataFrame(
        {
            "workload": rows["workload_label"],
            "strategy": rows["strategy"],
            "cost": cost,
            "cost_low": (rows["compile_cost_low_ns"].astype("Float64") / 1e9).fillna(cost).astype(float),
            "cost_high": (rows["compile_cost_high_ns"].astype("Float64") / 1e9).fillna(cost).astype(float),
            "speedup": speedup,
            "low": rows["speedup_low"].astype("Float64").fillna(speedup).astype(float),
            "high": rows["speedup_high"].astype("Float64").fillna(speedup).astype(float),
            "cost_text": [units.duration(value) for value in rows["compile_cost_ns"]],
            "speedup_text": [units.ratio(value) for value in rows["speedup"]],
            "trials_text": [units.count(value) for value in rows["counted_trials"]],
        }
    ).sort_values(["workload", "cost", "speedup"], ascending=[True, True, False], ignore_index=True)
    faster_before = table.groupby("workload")["speedup"].transform(lambda column: column.cummax().shift())
    table["best"] = (table["speedup"] > 1) & ~(table["speedup"] <= faster_before)
    return table


def ends(rows: pd.DataFrame, *, log: bool) -> pd.DataFrame:
    """The last point of each workload's front, without those whose name would overlap another's."""
    best = rows[rows["best"]]
    last = best.groupby("workload").tail(1).sort_values("speedup", ascending=False)
    cost, cheapest, dearest = (
        rows[name].map(math.log) if log else rows[name] for name in ("cost", "cost_low", "cost_high")
    )
    width = float(dearest.max() - cheapest.min()) or 1.0
    height = float(rows["high"].max() - rows["low"].min()) or 1.0
    kept: list[tuple[float, float, int]] = []
    shown = []
    places = zip(cost[last.index] / width, last["speedup"] / height, last["workload"].str.len(), strict=True)
    for x, y, letters in places:
        clear = all(
            abs(x - a) > _LETTER * (letters + others) / 2 or abs(y - b) > _LINE for a, b, others in kept
        )
        shown.append(clear)
        if clear:
            kept.append((x, y, letters))
    return last[shown]


def spread_out(rows: pd.DataFrame) -> bool:
    """Whether the costs need a logarithmic axis."""
    cheapest = float(rows["cost_low"].min())
    return cheapest > 0 and float(rows["cost_high"].max()) / cheapest >= _LOG_FROM


@lru_cache(maxsize=64)
def spec(strategies: tuple[str, ...], *, log: bool) -> style.Spec:
    """The Pareto chart over `main` (all cases), `front` (a line per workload) and `ends` (names)."""
    x = alt.X(
        "cost",
        type="quantitative",
        title="Compile cost (s)",
        scale=alt.Scale(type="log", nice=False, padding=24) if log else alt.Scale(padding=24),
        axis=alt.Axis(values=_DECADES, grid=True, format="~g")
        if log
        else alt.Axis(tickCount=6, format=",~f"),
    )
    y = alt.Y(
        "speedup",
        type="quantitative",
        title="Speedup (x over eager)",
        scale=alt.Scale(zero=False, padding=14),
        axis=alt.Axis(tickCount=6),
    )
    fronts = (
        style.inked("front")
        .mark_line(interpolate="step-after", strokeDash=[4, 3], strokeWidth=1.2, opacity=0.55, aria=False)
        .encode(x=x, y=y, detail=alt.Detail("workload", type="nominal"), stroke=style.ink_stroke())
    )
    # A phone has no room for them; the tooltip names the workload.
    wide_only = alt.ExprRef(expr=f"width < {style.PHONE_PX} ? 0 : 1")
    names = (
        style.inked("ends")
        .mark_text(align="center", dy=-13, fontSize=11, aria=False, opacity=wide_only)
        .encode(x=x, y=y, text=alt.Text("workload", type="nominal"), fill=style.ink_fill())
    )
    layers = alt.layer(fronts, *_points(x, y, strategies), names)
    return style.spec_of(layers.properties(height=style.HEIGHT))


def _points(x: alt.X, y: alt.Y, strategies: tuple[str, ...]) -> list[alt.Chart]:
    """A point per case, and its intervals of compile cost and of speedup."""
    colour = style.strategy_colour(strategies)
    base = alt.Chart(style.data("main"))
    across = base.mark_rule(opacity=0.35, strokeWidth=2, aria=False).encode(
        x=alt.X("cost_low", type="quantitative"), x2="cost_high", y=y, color=colour
    )
    along = base.mark_rule(opacity=0.35, strokeWidth=2, aria=False).encode(
        x=x, y=alt.Y("low", type="quantitative"), y2="high", color=colour
    )
    points = base.mark_point(filled=True, size=100, opacity=1).encode(
        x=x,
        y=y,
        color=colour,
        shape=style.strategy_shape(strategies),
        tooltip=style.text_tooltip(
            workload="Workload",
            strategy="Strategy",
            speedup_text="Speedup",
            cost_text="Compile cost",
            trials_text="Trials (n)",
        ),
    )
    return [across, along, points]
