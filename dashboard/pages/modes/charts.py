"""Workload x strategy as a heat map of speedup, with the number, or why there is none, in each cell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import altair as alt
import pandas as pd

from compilewatch.dashboard.charts import point_names, style
from compilewatch.dashboard.read import shaping
from compilewatch.dashboard.text import theme
from compilewatch.db import units
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.trial import timing_text

Case = dict[str, Any]
NO_NUMBER = "no number"
# log2 of a speedup at which the colour of the heat map is full: 2x and 0.5x.
FULL_COLOUR = 1.0
# log2 of a speedup from which white text stands out more than black, which then both have a contrast of 4.5.
_WHITE_TEXT = 0.73
# What a number in a cell takes of its width. Below that of a small one the tooltip has it.
_NUMBER_PX, _SMALL_NUMBER_PX = 44, 30
# Rows of many workloads move together; numbers still fit.
_ROW, _LOWEST_ROW, _TALLEST = 44, 26, 1000


def cells(cases: pd.DataFrame, not_applicable: Mapping[str, str], workloads: list[str]) -> pd.DataFrame:
    """One row per workload and compiled strategy with a case, its `text` a speedup or why there is none.

    `not_applicable` maps strategies that mean nothing on this device to the reason. Those without a case have
    no column: it would take the room of numbers.
    """
    by_case = {(case["workload_label"], case["strategy"]): case for case in row_dicts(cases)}
    strategies = [name for name in theme.ordered(cases["strategy"]) if name != "eager"]
    rows = [
        _cell(workload, strategy, by_case.get((workload, strategy)), not_applicable)
        for workload in workloads
        for strategy in strategies
    ]
    texts = ("latency_text", "timing_text", "trials_text")
    columns = ["workload", "strategy", "strength", "text", "state", "ink", "detail", *texts]
    return pd.DataFrame(rows, columns=columns)


def _cell(workload: str, strategy: str, case: Case | None, reasons: Mapping[str, str]) -> dict[str, object]:
    cell: dict[str, object] = {
        "workload": workload,
        "strategy": strategy,
        "strength": 0.0,
        "state": NO_NUMBER,
        "ink": "white",
        "latency_text": units.MISSING,
        "timing_text": units.MISSING,
        "trials_text": "0",
    }
    if case is None:
        reason = reasons.get(strategy)
        return cell | {
            "text": "n/a" if reason else "not run",
            "detail": f"not applicable: {reason}" if reason else "not measured with this build",
        }
    cell["trials_text"] = units.count(case["trials"])
    cell["timing_text"] = timing_text(case["timing_method"], case["bound"]) or units.MISSING
    speedup = shaping.number(case["speedup"])
    if speedup is None:
        failed = isinstance(case["failure_kind"], str)
        why = units.words(case["failure_kind"]) if failed else "no latency to compare"
        return cell | {"text": "failed" if failed else "unknown", "detail": why}
    strength = 0.0 if case["first_look"] else max(-FULL_COLOUR, min(FULL_COLOUR, math.log2(speedup)))
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
        timing_text="Timing",
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
                alt.Color("strength:Q", scale=scale, legend=None),
            ),
            tooltip=tooltip,
        )
        .add_params(style.pick("workload", "strategy"))
    )
    small, fits = (f"width < {px * len(strategies)}" for px in (_SMALL_NUMBER_PX, _NUMBER_PX))
    fitting = alt.ExprRef(expr=f"{small} ? 0 : {fits} ? 10 : 13")
    numbers = base.mark_text(fontSize=fitting, fontWeight=600, aria=False).encode(
        x=x,
        y=y,
        text="text:N",
        color=alt.condition("datum.ink == 'white'", alt.value("#FFFFFF"), alt.value("#000000")),
        tooltip=tooltip,
    )
    height = row * len(workloads) + max(60, 30 + style.slanted_px(strategies))
    chart = alt.layer(squares, numbers).properties(height=height)
    return style.matrix_spec_of(chart)


# Compile cost against speedup, with the front of each workload: what no cheaper strategy outruns.

_HEIGHT_PX = 380
# Costs that differ by less stand on a linear axis: a logarithmic one would have no marks between them.
_LOG_FROM = 5.0


def front(cases: pd.DataFrame) -> pd.DataFrame:
    """Compile cost (s) against speedup per case; `best`: faster than eager, which costs nothing, and no case
    of the workload is cheaper and as fast; a first look has no rank.
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
            "first_look": rows["first_look"].astype(bool),
        }
    ).sort_values(["workload", "cost", "speedup"], ascending=[True, True, False], ignore_index=True)
    ranked = table["speedup"].where(~table["first_look"])
    faster_before = ranked.groupby(table["workload"]).transform(
        lambda column: column.cummax().ffill().shift()
    )
    table["best"] = (ranked > 1) & ~(ranked <= faster_before)
    return table


class Ends(NamedTuple):
    """The ends of both axes: compile cost in s, and speedup."""

    cheapest: float
    dearest: float
    slowest: float
    fastest: float


def ends(rows: pd.DataFrame, *, log: bool) -> Ends:
    """All of `front` with its intervals and some air; 1x is always in it."""
    low, high = float(rows["cost_low"].min()), float(rows["cost_high"].max())
    slowest, fastest = min(1.0, float(rows["low"].min())), max(1.0, float(rows["high"].max()))
    air = max(fastest - slowest, 0.1) * 0.1
    beside = max(high - low, abs(high) * 0.1, 1e-3) * 0.1
    across = (low / 1.25, high * 1.25) if log else (low - beside, high + beside)
    return Ends(*(float(f"{end:.4g}") for end in (*across, max(0.0, slowest - air), fastest + air)))


def names(rows: pd.DataFrame, *, log: bool) -> dict[str, pd.DataFrame]:
    """The names of the points of `front` by the frame of `pareto_spec` that draws them, off points and
    intervals.
    """
    return {frame: _names(rows, width_px, log=log) for frame, width_px in point_names.WIDTHS_PX.items()}


def _names(rows: pd.DataFrame, width_px: float, *, log: bool) -> pd.DataFrame:
    range_ends = ends(rows, log=log)
    scale = math.log if log else float
    left, right = scale(range_ends.cheapest), scale(range_ends.dearest)

    def across(column: str) -> list[float]:
        return [(scale(cost) - left) / (right - left) * width_px for cost in rows[column]]

    def up(column: str) -> list[float]:
        height = range_ends.fastest - range_ends.slowest
        return [(range_ends.fastest - speedup) / height * _HEIGHT_PX for speedup in rows[column]]

    xs, ys = across("cost"), up("speedup")
    spans = zip(across("cost_low"), across("cost_high"), ys, strict=True)
    marks = [(low, y - 1, high, y + 1) for low, high, y in spans]
    marks += [(x - 1, high, x + 1, low) for low, high, x in zip(up("low"), up("high"), xs, strict=True)]
    named = point_names.placed(rows, list(zip(xs, ys, strict=True)), marks, width_px)
    return named[["workload", "cost", "speedup", "place"]]


def spread_out(rows: pd.DataFrame) -> bool:
    """Whether the costs need a logarithmic axis."""
    cheapest = float(rows["cost_low"].min())
    return cheapest > 0 and float(rows["cost_high"].max()) / cheapest >= _LOG_FROM


@lru_cache(maxsize=64)
def pareto_spec(
    strategies: tuple[str, ...], shown: Ends, *, log: bool, looks: tuple[bool, ...] = (False,)
) -> style.Spec:
    """The Pareto chart over `main` (all cases), `front` (a line per workload) and `names`."""
    speedups = alt.Scale(domain=[shown.slowest, shown.fastest], nice=False)
    kind: Literal["log", "linear"] = "log" if log else "linear"
    x = alt.X(
        "cost:Q",
        title="Compile cost (s)",
        scale=alt.Scale(type=kind, domain=[shown.cheapest, shown.dearest], nice=False),
        axis=alt.Axis(values=style.ticks(shown.cheapest, shown.dearest, log=log), grid=True, format=",~f"),
    )
    y = alt.Y(
        "speedup:Q",
        title="Speedup (x over eager)",
        scale=speedups,
        axis=alt.Axis(values=style.ticks(shown.slowest, shown.fastest), format="~f"),
    )
    fronts = (
        style.inked("front")
        .mark_line(interpolate="step-after", strokeDash=[4, 3], strokeWidth=1.2, opacity=0.55, aria=False)
        .encode(x=x, y=y, detail="workload:N", stroke=style.ink_stroke())
    )
    layers = alt.layer(
        style.level(1, speedups), fronts, *_points(x, y, strategies, looks), *point_names.layers(x, y)
    )
    return style.spec_of(layers.properties(height=_HEIGHT_PX + 110))


def _points(x: alt.X, y: alt.Y, strategies: tuple[str, ...], looks: tuple[bool, ...]) -> list[alt.Chart]:
    """A point per case, and its intervals of compile cost and of speedup."""
    colour = style.strategy_colour(strategies)
    base = alt.Chart(style.data("main"))
    across = base.mark_rule(opacity=0.35, strokeWidth=2, aria=False).encode(
        x="cost_low:Q", x2="cost_high", y=y, color=colour
    )
    along = base.mark_rule(opacity=0.35, strokeWidth=2, aria=False).encode(
        x=x, y="low:Q", y2="high", color=colour
    )
    points = style.points(
        strategies,
        looks,
        100,
        x=x,
        y=y,
        tooltip=style.text_tooltip(
            workload="Workload",
            strategy="Strategy",
            speedup_text="Speedup",
            cost_text="Compile cost",
            trials_text="Trials (n)",
        ),
    )
    return [across, along, *points]
