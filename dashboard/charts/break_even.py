"""Total time against steps per process, a line and a band per strategy, and where they cross eager."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Literal

import altair as alt
import numpy as np
import pandas as pd

from compilewatch.dashboard.charts import style
from compilewatch.dashboard.charts.style import log_ticks
from compilewatch.db import units
from compilewatch.db.metrics.break_even import Never, is_shown, repaid_words, steps_to_break_even
from compilewatch.db.metrics.case_modes import totals_frame
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.metrics.mode_choice import ModeOption, StepRange, shown_envelope
from compilewatch.db.records.strategies import EAGER

# Where the labels of crossings stand: beside their marks, within the chart and off the rule.

Mark = dict[str, object]
_COLUMNS = ["strategy", "steps", "total", "label", "says", "side", "place", "near", "far", "rule"]


def placed(marks: Sequence[Mark], wanted: int, last: int, *, log: bool) -> pd.DataFrame:
    """`marks` by steps, each with the side its label would stand on, away from its nearest neighbour.

    In shares of an axis that ends at `last` are `place` of the mark, `near` and `far`, how far its neighbours
    are from it (1 where there is none), and `rule`, at the steps `wanted`, above 1 where the axis ends before
    it.
    """
    rule = share(wanted, last, log=log)
    ordered = sorted((int(str(mark["steps"])), place) for place, mark in enumerate(marks))
    places = [share(steps, last, log=log) for steps, _ in ordered]
    gaps = [1.0, *(after - before for before, after in pairwise(places)), 1.0]
    rows = [
        {
            **marks[number],
            "side": "left" if gaps[nth + 1] < gaps[nth] else "right",
            "place": places[nth],
            "near": min(gaps[nth : nth + 2]),
            "far": max(gaps[nth : nth + 2]),
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
    """The labels over the frame of `placed` as texts; `x` and `y` are those of the marks. A mark between two
    close ones has no room for one: its tooltip says it.
    """
    places: tuple[tuple[str, Literal["left", "right"], Literal["top", "bottom"], int], ...] = (
        ("right", "left", "top", 1),
        ("left", "right", "bottom", -1),
    )
    return [
        base.transform_calculate(stands=_STANDS)
        .transform_filter(f"datum.stands == '{side}' && datum.far * width > {_END}")
        .mark_text(
            align=align,
            baseline=baseline,
            dx=sign * _GAP_PX,
            dy=sign * 7,
            fontSize=12,
            fontWeight=600,
            aria=False,
        )
        .encode(x=x, y=y, text="label:N", fill=style.ink_fill())
        for side, align, baseline, sign in places
    ]


GRID = 60
# What the time axis has above its largest value, as a factor.
_AIR = 1.04
# A linear axis that must also show a crossing this many times further out would hide the nearest one.
_FAR = 25
_UNITS = (("h", 3600e9), ("min", 60e9), ("s", 1e9), ("ms", 1e6))


@dataclass(frozen=True)
class Curves:
    """The frames of the chart by their names in `spec`, the unit of its time axis and the last step shown;
    `beyond` has the steps of the crossings with eager right of its edge, by strategy. `least` and `largest`
    are the ends of what is drawn on the time axis.
    """

    frames: dict[str, pd.DataFrame]
    unit: str
    beyond: dict[str, int]
    last_step: int
    least: float
    largest: float


def curves(options: Sequence[ModeOption], *, steps: int, restarts: int, log: bool) -> Curves:
    """Lines of `options` (eager first); first looks are lines without a mark.

    `steps` and `restarts` are the plan of the reader; `log` is a logarithmic axis of steps.
    """
    crossing = {
        option.strategy: _crossing(option, options[0])
        for option in options[1:]
        if option.repays and not option.is_first_look
    }
    by_name = {option.strategy: option for option in options}
    switches = _switches(options, restarts)
    finite = sorted(
        [*(at for at in crossing.values() if at is not None), *(each.first_steps for each in switches)]
    )
    last = _last_step(finite, steps, log=log)
    totals = totals_frame(options, _grid(last, log=log), restarts)
    unit, divisor = _unit(float(totals["total_ns"].max()))
    best = totals[totals["best"]]
    pays_off = {name: at for name, at in crossing.items() if at is not None}
    totals_at = {name: float(by_name[name].total_ns(at, restarts)) for name, at in pays_off.items()}
    marks = [_pays_off(name, at, totals_at[name] / divisor) for name, at in pays_off.items() if at <= last]
    marks += [_takes_over(each, divisor) for each in switches if each.first_steps <= last]
    lines = _lines(totals, divisor)
    return Curves(
        frames={
            "main": lines,
            "envelope": pd.DataFrame(
                {"steps": best["steps"], "total": best["total_ns"].astype(float) / divisor}
            ),
            "crossings": placed(marks, steps, last, log=log),
            "wanted": _wanted(steps, last, log=log),
        },
        unit=unit,
        beyond={name: at for name, at in pays_off.items() if at > last},
        last_step=last,
        least=float(lines["low"].where(lines["low"] > 0).min()),
        largest=float(lines["high"].max()),
    )


def _pays_off(strategy: str, steps: int, total: float) -> Mark:
    """Where a strategy crosses eager."""
    says = f"{strategy} pays off after {units.steps(steps)}"
    return {"strategy": strategy, "steps": steps, "total": total, "label": units.count(steps), "says": says}


def _takes_over(segment: StepRange, divisor: float) -> Mark:
    """Where a compiled strategy takes over from another."""
    return {
        "strategy": segment.strategy,
        "steps": segment.first_steps,
        "total": float(segment.total_at_first_ns) / divisor,
        "label": units.count(segment.first_steps),
        "says": f"{segment.strategy} is the fastest from {units.steps(segment.first_steps)} on",
    }


def _crossing(option: ModeOption, eager: ModeOption) -> int | None:
    """The steps at which it is no more above `eager`."""
    steps = steps_to_break_even(option.compile_cost_ns, option.latency_ns, eager.latency_ns)
    return None if isinstance(steps, Never) else steps


def _switches(options: Sequence[ModeOption], restarts: int) -> list[StepRange]:
    """Where one compiled strategy takes over from another on the lower envelope."""
    segments = shown_envelope(options, restarts)
    return [after for before, after in pairwise(segments) if before.strategy != options[0].strategy]


def _last_step(finite: list[int], steps: int, *, log: bool) -> int:
    if log:
        return max(10, steps * 2, *(3 * at for at in finite))
    if not finite:
        return max(10, steps)
    shown = [at for at in finite if at <= _FAR * finite[0]]
    return max(4, math.ceil(shown[-1] * 1.8))


def _grid(last: int, *, log: bool) -> list[int]:
    points = np.geomspace(1, last, GRID) if log else np.linspace(1, last, GRID)
    return sorted({round(point) for point in points})


def _unit(largest_ns: float) -> tuple[str, float]:
    return next(((unit, factor) for unit, factor in _UNITS if largest_ns >= 2 * factor), _UNITS[-1])


def _lines(totals: pd.DataFrame, divisor: float) -> pd.DataFrame:
    steps, ns, lows, highs = (
        totals[name].tolist() for name in ("steps", "total_ns", "total_low_ns", "total_high_ns")
    )
    total, low, high = (
        totals[name].to_numpy(dtype=np.float64, na_value=np.nan) / divisor
        for name in ("total_ns", "total_low_ns", "total_high_ns")
    )
    return pd.DataFrame(
        {
            "steps": np.array(steps, dtype=np.int64),
            "strategy": totals["strategy"].array,
            "total": total,
            "low": np.where(np.isnan(low), total, low),
            "high": np.where(np.isnan(high), total, high),
            "total_text": [units.duration(value) for value in ns],
            "interval_text": [
                units.interval(*ends, units.duration) for ends in zip(lows, highs, strict=True)
            ],
            "steps_text": [units.steps(count) for count in steps],
        }
    )


@lru_cache(maxsize=128)
def spec(
    strategies: tuple[str, ...], unit: str, scale: str, last_step: int, ends: tuple[float, float]
) -> style.Spec:
    """Over the frames of `Curves` as `main`, `envelope` and `crossings`, and `wanted`.

    `unit` is that of the time axis, `ends` what it must hold, `last_step` the end of the axis of steps.
    """
    log = scale == "log"
    shape: Literal["log", "linear"] = "log" if log else "linear"
    ticks = {"values": log_ticks(1, last_step)} if log else {"tickCount": 6}
    low, high = (ends[0] / _AIR if log else 0.0), ends[1] * _AIR
    times = alt.Scale(type=shape, domain=[float(f"{end:.4g}") for end in (low, high)], nice=False)
    steps = alt.Scale(type=shape, domain=[int(log), last_step], nice=False)
    x = alt.X(
        "steps:Q",
        title="Steps per process",
        scale=steps,
        axis=style.steps_axis(grid=False, **ticks),
    )
    y = alt.Y(
        "total:Q",
        title=f"Total time ({unit})",
        scale=times,
        axis=alt.Axis(values=style.ticks(low, high, log=log), format=",~f"),
    )
    envelope = (
        style.inked("envelope")
        .mark_line(strokeWidth=9, opacity=0.16, strokeCap="round", aria=False)
        .encode(x=x, y=y, stroke=style.ink_stroke())
    )
    layers = [*_plan(), envelope, *_totals(x, y, strategies), *_crossings(x, y, strategies)]
    return style.spec_of(alt.layer(*layers).properties(height=style.HEIGHT + 20))


def _totals(x: alt.X, y: alt.Y, strategies: tuple[str, ...]) -> list[alt.Chart]:
    """Band and line of each strategy, and invisible marks on the line that carry its tooltip."""
    colour = style.strategy_colour(strategies)
    base = alt.Chart(style.data("main"))
    band = base.mark_area(opacity=style.BAND_OPACITY, aria=False).encode(
        x=x, y="low:Q", y2="high", color=colour
    )
    lines = base.mark_line(strokeWidth=2.4, clip=True, aria=False).encode(
        x=x, y=y, color=colour, strokeDash=style.strategy_dash(strategies)
    )
    hover = base.mark_point(size=110, opacity=0, filled=True, aria=False).encode(
        x=x,
        y=y,
        tooltip=style.text_tooltip(
            strategy="Strategy", steps_text="After", total_text="Total", interval_text="95 % interval"
        ),
    )
    return [band, lines, hover]


def _plan() -> list[alt.Chart]:
    """The rule at the steps that the reader plans, with its label."""
    at = alt.X("steps:Q")
    base = style.inked("wanted")
    rule = base.mark_rule(strokeDash=[3, 3], strokeWidth=1.3, aria=False).encode(
        x=at, stroke=style.ink_stroke()
    )
    texts = []
    sides: tuple[tuple[str, Literal["left", "right"], int], ...] = (
        ("right", "left", 6),
        ("left", "right", -6),
    )
    for side, align, dx in sides:
        texts.append(
            base.transform_filter(f"datum.side == '{side}'")
            .mark_text(align=align, baseline="top", dx=dx, fontSize=12, aria=False)
            .encode(x=at, y=alt.value(2), text="label:N", fill=style.ink_fill())
        )
    return [rule, *texts]


def _crossings(x: alt.X, y: alt.Y, strategies: tuple[str, ...]) -> list[alt.Chart]:
    base = style.inked("crossings")
    marks = base.mark_point(size=130, filled=True, opacity=1).encode(
        x=x,
        y=y,
        color=style.strategy_colour(strategies),
        shape=style.strategy_shape(strategies),
        tooltip=style.text_tooltip(strategy="Strategy", says="Crossing"),
    )
    return [marks, *layers(base, x, y)]


def _wanted(steps: int, last_step: int, *, log: bool) -> pd.DataFrame:
    """The rule at the steps that the reader asked about, where the axis reaches that far; its label stands on
    the side that has more room.
    """
    place = share(steps, last_step, log=log)
    label = {"steps": steps, "label": units.steps(steps), "side": "right" if place < 0.5 else "left"}
    return pd.DataFrame([label] if steps <= last_step else [], columns=list(label))


_OF_FINDING = ("break_even", "break_even_steps", "break_even_interval", "break_even_low", "first_look")


def finding(cases: pd.DataFrame, workload: str) -> str:
    """ "default pays off after 1,240 steps", for the strategy that pays off first, or that none does or is
    shown to. First looks are no finding.
    """
    compiled = [row for row in row_dicts(cases[["strategy", *_OF_FINDING]]) if row["strategy"] != EAGER.name]
    known = [row for row in compiled if not row["first_look"]]
    paying = [row for row in known if row["break_even"] == "steps" and is_shown(row)]
    if paying:
        first = min(paying, key=itemgetter("break_even_steps"))
        return f"{first['strategy']} pays off after {units.steps(first['break_even_steps'])} on {workload}"
    if not_shown := [row for row in known if not is_shown(row)]:
        first = min(not_shown, key=itemgetter("break_even_low"))
        return (
            f"No strategy is shown to pay off on {workload}: {first['strategy']} {repaid_words(first)} steps"
        )
    if any(row["break_even"] == "never" for row in known):
        return f"Compiling never pays off on {workload}"
    if len(known) < len(compiled):
        return f"A first look at {workload}: one trial a case decides no break-even"
    return f"Break-even on {workload} is unknown"
