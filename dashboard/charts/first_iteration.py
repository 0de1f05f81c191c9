"""A workload of several batches, batch by batch, on its first way through: where compilations cost time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import altair as alt
import pandas as pd

from dashboard.charts import style
from dashboard.charts.samples import CONTROL
from db import units
from db.streams import CompileAt

_DECADES = [10.0**power for power in range(-3, 8)]


def frame(
    own_ns: Sequence[int], control_ns: Sequence[int], compiles: Sequence[CompileAt], strategy: str
) -> pd.DataFrame:
    """One row per batch and side: `batch`, `ms`, `strategy`, the time as text and what was compiled there."""
    compiled: dict[int, list[CompileAt]] = {}
    for each in compiles:
        compiled.setdefault(each.batch, []).append(each)
    return pd.DataFrame(
        [
            {
                "batch": number,
                "ms": took / 1e6,
                "strategy": side,
                "text": units.duration(took),
                "compiled": _compiled(compiled.get(number, []) if side == strategy else []),
            }
            for side, times in ((strategy, own_ns), (CONTROL, control_ns))
            for number, took in enumerate(times, 1)
            if took
        ]
    )


def _compiled(here: Sequence[CompileAt]) -> str:
    if not here:
        return "nothing"
    return f"{units.plural(len(here), 'graph')}, {units.duration(sum(each.took_ns for each in here))}"


@lru_cache(maxsize=32)
def by_batch(strategies: tuple[str, ...]) -> style.Spec:
    """Over frame `main`. Logarithmic: a compilation takes a thousand times as long as a step."""
    points = (
        alt.Chart(style.data("main"))
        .mark_point(filled=True, size=34, opacity=0.8)
        .encode(
            x=alt.X(
                "batch",
                type="quantitative",
                title="Batch of the first iteration",
                axis=alt.Axis(grid=False, tickMinStep=1, format=",d"),
            ),
            y=alt.Y(
                "ms",
                type="quantitative",
                title="Time of the batch (ms)",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(format="~g", values=_DECADES),
            ),
            color=style.strategy_colour(strategies),
            shape=style.strategy_shape(strategies),
            tooltip=style.text_tooltip(strategy="Strategy", batch="Batch", text="Time", compiled="Compiled"),
        )
    )
    return style.spec_of(points.properties(height=280))
