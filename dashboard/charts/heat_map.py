"""Workload x strategy as a heat map of speedup, with the number, or why there is none, in each cell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import altair as alt
import pandas as pd

from dashboard import shaping, theme
from dashboard.charts import style
from db import units
from db.metrics.frame_rows import row_dicts

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
