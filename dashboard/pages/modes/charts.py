"""Workload x strategy as a heat map of speedup, with the number, or why there is none, in each cell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import altair as alt
import pandas as pd

from dashboard.charts import style
from dashboard.read import shaping
from dashboard.render import theme
from db.metrics.groups import row_dicts
from db.wording import units

Case = dict[str, Any]
NO_NUMBER = "no number"
# log2 of a speedup at which the colour of the heat map is full: 2x and 0.5x.
FULL_COLOUR = 1.0
# log2 of a speedup from which the cell is dark enough for white text.
_WHITE_TEXT = 0.62
# What a number in a cell takes of its width.
_NUMBER_PX = 44
# Rows of many workloads move together; numbers still fit.
_ROW, _LOWEST_ROW, _TALLEST = 44, 26, 1000


def cells(cases: pd.DataFrame, not_applicable: Mapping[str, str], workloads: list[str]) -> pd.DataFrame:
    """One row per workload and compiled strategy: `state` is ok, failed, or not applicable, with its text.

    `not_applicable` maps strategies that mean nothing on this device to the reason.
    """
    by_case = {(case["workload_label"], case["strategy"]): case for case in row_dicts(cases)}
    strategies = [name for name in theme.ordered([*cases["strategy"], *not_applicable]) if name != "eager"]
    rows = [
        _cell(workload, strategy, by_case.get((workload, strategy)), not_applicable)
        for workload in workloads
        for strategy in strategies
    ]
    return pd.DataFrame(
        rows,
        columns=[
            "workload",
            "strategy",
            "strength",
            "text",
            "state",
            "ink",
            "detail",
            "latency_text",
            "trials_text",
        ],
    )


def _cell(workload: str, strategy: str, case: Case | None, reasons: Mapping[str, str]) -> dict[str, object]:
    cell: dict[str, object] = {
        "workload": workload,
        "strategy": strategy,
        "strength": 0.0,
        "state": NO_NUMBER,
        "ink": "white",
        "latency_text": units.MISSING,
        "trials_text": "0",
    }
    if case is None:
        reason = reasons.get(strategy)
        return cell | {
            "text": "n/a" if reason else "not run",
            "detail": f"not applicable: {reason}" if reason else "not measured with this build",
        }
    cell["trials_text"] = units.count(case["trials"])
    speedup = shaping.number(case["speedup"])
    if speedup is None:
        failed = isinstance(case["failure_kind"], str)
        why = units.words(case["failure_kind"]) if failed else "no latency to compare"
        return cell | {"text": "failed" if failed else "unknown", "detail": why}
    strength = max(-FULL_COLOUR, min(FULL_COLOUR, math.log2(speedup)))
    empty = bool(case["nothing_compiled"])
    interval = units.interval(
        case["speedup_low"], case["speedup_high"], units.ratio, trials=case["counted_trials"]
    )
    return cell | {
        "strength": strength,
        "state": "measured",
        "text": units.ratio(speedup) + ("*" if empty else ""),
        "ink": "white" if abs(strength) > _WHITE_TEXT else "black",
        "detail": "nothing was compiled (0 graphs)" if empty else interval,
        "latency_text": units.duration(case["latency_ns"]),
    }


@lru_cache(maxsize=64)
def spec(workloads: tuple[str, ...], strategies: tuple[str, ...]) -> style.Spec:
    """Cells over the frame `main`, in the order given; a click picks one."""
    row = max(_LOWEST_ROW, min(_ROW, _TALLEST // max(1, len(workloads))))
    base = alt.Chart(style.data("main"))
    x, y = style.matrix_columns(strategies), style.matrix_rows(workloads)
    tooltip = style.text_tooltip(
        workload="Workload",
        strategy="Strategy",
        text="Speedup",
        detail="95 % interval or reason",
        latency_text="Latency",
        trials_text="Trials (n)",
    )
    scale = alt.Scale(domain=[-FULL_COLOUR, 0, FULL_COLOUR], range=theme.DIVERGING, interpolate="rgb")
    squares = (
        base.mark_rect(cornerRadius=5, stroke=None)
        .encode(
            x=x,
            y=y,
            color=alt.condition(
                f"datum.state == '{NO_NUMBER}'",
                alt.value("#66707D"),
                alt.Color("strength", type="quantitative", scale=scale, legend=None),
            ),
            tooltip=tooltip,
        )
        .add_params(style.pick("workload", "strategy"))
    )
    fitting = alt.ExprRef(expr=f"width < {_NUMBER_PX * len(strategies)} ? 10 : 13")
    numbers = base.mark_text(fontSize=fitting, fontWeight=600, aria=False).encode(
        x=x,
        y=y,
        text=alt.Text("text", type="nominal"),
        color=alt.condition("datum.ink == 'white'", alt.value("#FFFFFF"), alt.value("#17202B")),
        tooltip=tooltip,
    )
    chart = alt.layer(squares, numbers).properties(height=row * len(workloads) + 60)
    return style.matrix_spec_of(chart)


# Compile cost against speedup, with the front of each workload: what no cheaper strategy outruns.

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
def pareto_spec(strategies: tuple[str, ...], *, log: bool) -> style.Spec:
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
