"""Scaling on Modes: throughput, speedup, peak memory and compile cost over a size, of both sides."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import altair as alt
import pandas as pd

from compilewatch.dashboard.charts import style
from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.parts.parts import Chart, Group, Part
from compilewatch.dashboard.text import theme
from compilewatch.db import units
from compilewatch.db.columns.metrics import BY_COLUMN
from compilewatch.db.metrics.scaling import Sweep, sweeps

MOST_SWEEPS = 6
_LOG_FROM = 4
"""Sizes that differ by this factor or more stand on a logarithmic axis."""
_UPPER, _LOWER = ("throughput_per_s", "peak_bytes"), ("speedup", "compile_cost_ns")


def scaling_parts(cases: pd.DataFrame) -> Iterator[Part]:
    """A group of charts for each sweep; nothing where no workload was measured at several sizes."""
    for number, sweep in enumerate(sweeps(cases)[:MOST_SWEEPS]):
        columns = tuple(
            tuple(_chart(sweep, name, number) for name in half if sweep.points[name].notna().any())
            for half in (_UPPER, _LOWER)
        )
        yield Group(
            columns, f"Scaling of {sweep.workload} over {units.words(sweep.size)}", key=f"scaling-{number}"
        )


def _chart(sweep: Sweep, name: str, number: int) -> Chart:
    figure = BY_COLUMN[name]
    known = sweep.points[sweep.points[name].notna()]
    rows = pd.DataFrame(
        {
            "strategy": known["strategy"],
            "size": known["size"],
            "value": known[name].astype("float64") / figure.divisor,
            "text": [figure.write(value) for value in known[name].tolist()],
            "first_look": known["first_look"],
        }
    )
    largest = rows["size"].max()
    ends = ", ".join(
        f"{row.strategy} {row.text}" for row in rows[rows["size"] == largest].itertuples(index=False)
    )
    size = units.words(sweep.size)
    strategies = tuple(theme.ordered(rows["strategy"]))
    looks = tuple(sorted(set(rows["first_look"].tolist())))
    spec = _spec(strategies, size, figure.axis_title, tuple(sorted(set(rows["size"].tolist()))), looks)
    return Chart(
        f"scaling-{number}-{name}",
        f"{figure.name} of {sweep.workload} over {size}, a line per strategy",
        ChartContent(f"{figure.name} at {size} {largest}: {ends}", spec, {"main": rows}),
    )


@lru_cache(maxsize=64)
def _spec(
    strategies: tuple[str, ...], size: str, title: str, sizes: tuple[int, ...], looks: tuple[bool, ...]
) -> style.Spec:
    log = sizes[0] > 0 and sizes[-1] >= _LOG_FROM * sizes[0]
    scale = alt.Scale(type="log", base=2, nice=False) if log else alt.Scale(zero=False, padding=14)
    x = alt.X("size:Q", title=size.capitalize(), scale=scale, axis=alt.Axis(values=list(sizes), format="d"))
    y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    line = (
        alt.Chart(style.data("main"))
        .mark_line(strokeWidth=2.2, aria=False)
        .encode(x=x, y=y, color=style.strategy_colour(strategies), strokeDash=style.strategy_dash(strategies))
    )
    tooltip = style.text_tooltip(strategy="Strategy", size=size.capitalize(), text="Value")
    points = style.points(strategies, looks, 80, x=x, y=y, tooltip=tooltip)
    return style.spec_of(alt.layer(line, *points).properties(height=240))
