"""The samples of one trial, over time and as a distribution, the eager control beside the compiled ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import altair as alt
import numpy as np
import pandas as pd

from compilewatch.dashboard.charts import style
from compilewatch.db import units
from compilewatch.db.records.sampling_facts import CompileAt
from compilewatch.db.records.strategies import EAGER

MOST_SAMPLES = 900
BINS = 40


def frame(samples_ns: Sequence[int], control_ns: Sequence[int], strategy: str) -> pd.DataFrame:
    """One row per sample in measured order: `place`, `ms`, `strategy`, texts; thinned above the limit."""
    parts = [_rows(samples_ns, strategy)]
    if control_ns:
        parts.append(_rows(control_ns, EAGER.name))
    return pd.concat(parts, ignore_index=True)


def _rows(samples_ns: Sequence[int], strategy: str) -> pd.DataFrame:
    step = max(1, -(-len(samples_ns) // MOST_SAMPLES))
    sample = list(samples_ns)[::step]
    return pd.DataFrame(
        {
            "place": range(1, len(samples_ns) + 1, step),
            "ms": [value / 1e6 for value in sample],
            "strategy": strategy,
            "text": [units.duration(value) for value in sample],
        }
    )


def distribution(samples_ns: Sequence[int], control_ns: Sequence[int], strategy: str) -> pd.DataFrame:
    """Share of samples per bin and side: `left`, `right` (ms), `share`, `strategy`. Bins are common to both.

    The slowest 1 % of the samples is put into the last bin so that one outlier does not flatten the rest.
    """
    sides = {strategy: np.asarray(samples_ns) / 1e6}
    if len(control_ns):
        sides[EAGER.name] = np.asarray(control_ns) / 1e6
    everything = np.concatenate(list(sides.values()))
    top = float(np.quantile(everything, 0.99))
    edges = np.linspace(float(everything.min()), max(top, float(everything.min()) * 1.001), BINS + 1)
    rows = []
    for name, values in sides.items():
        counts, _ = np.histogram(np.minimum(values, edges[-1]), edges)
        rows += [
            {
                "left": left,
                "right": right,
                "share": count / len(values),
                "strategy": name,
                "count_text": units.count(count),
            }
            for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True)
            if count
        ]
    table = pd.DataFrame(rows)
    table["range_text"] = [
        units.interval(left * 1e6, right * 1e6, units.duration)
        for left, right in zip(table["left"], table["right"], strict=True)
    ]
    table["share_text"] = [units.percent(share) for share in table["share"]]
    return table


@lru_cache(maxsize=32)
def over_time(strategies: tuple[str, ...]) -> style.Spec:
    """Every sample in the order measured, over `main` (`frame`), and a rule per side over `medians`."""
    points = (
        alt.Chart(style.data("main"))
        .mark_point(filled=True, size=34, opacity=0.8)
        .encode(
            x=alt.X("place:Q", title="Sample, in the order measured", axis=alt.Axis(grid=False)),
            y=alt.Y("ms:Q", title="Latency (ms)", scale=alt.Scale(zero=False, padding=8)),
            color=style.strategy_colour(strategies),
            shape=style.strategy_shape(strategies),
            tooltip=style.text_tooltip(strategy="Strategy", place="Sample", text="Latency"),
        )
    )
    medians = (
        alt.Chart(style.data("medians"))
        .mark_rule(strokeWidth=1.6, strokeDash=[5, 3], aria=False)
        .encode(y="ms:Q", color=style.strategy_colour(strategies))
    )
    return style.spec_of(alt.layer(medians, points).properties(height=280))


@lru_cache(maxsize=32)
def histogram(strategies: tuple[str, ...]) -> style.Spec:
    """Shares of the samples over `main` (`distribution`)."""
    bars = (
        alt.Chart(style.data("main"))
        .mark_rect(opacity=0.62, stroke=None)
        .encode(
            x=alt.X(
                "left:Q",
                title="Latency (ms)",
                scale=alt.Scale(zero=False),
                axis=alt.Axis(grid=False),
            ),
            x2="right",
            y=alt.Y(
                "share:Q",
                title="Share of samples",
                axis=alt.Axis(format=".0%", tickCount=4),
                scale=alt.Scale(zero=True),
            ),
            y2=alt.datum(0),
            color=style.strategy_colour(strategies),
            tooltip=style.text_tooltip(
                strategy="Strategy", range_text="Latency", share_text="Share", count_text="Samples (n)"
            ),
        )
    )
    return style.spec_of(bars.properties(height=280))


def medians(samples_ns: Sequence[int], control_ns: Sequence[int], strategy: str) -> pd.DataFrame:
    """The median of each side that has samples: `strategy`, `ms`."""
    # Eager has no control, and its name is that of one.
    sides = ((strategy, samples_ns), (EAGER.name, control_ns))
    return pd.DataFrame(
        [{"strategy": name, "ms": float(np.median(values)) / 1e6} for name, values in sides if len(values)]
    )


# A workload of several batches, batch by batch, on its first way through: where compilations cost time.

_DECADES = [10.0**power for power in range(-3, 8)]


def first_iteration_frame(
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
                "ms": time_ns / 1e6,
                "strategy": side,
                "text": units.duration(time_ns),
                "compiled": _compiled(compiled.get(number, []) if side == strategy else []),
            }
            for side, times in ((strategy, own_ns), (EAGER.name, control_ns))
            for number, time_ns in enumerate(times, 1)
            if time_ns
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
                "batch:Q",
                title="Batch of the first iteration",
                axis=alt.Axis(grid=False, tickMinStep=1, format=",d"),
            ),
            y=alt.Y(
                "ms:Q",
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
