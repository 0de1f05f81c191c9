"""The trials of both sides of one case: a lane of points per side and strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import altair as alt
import numpy as np
import pandas as pd

from compilewatch.dashboard.charts import style
from compilewatch.dashboard.parts import verdict_words
from compilewatch.dashboard.read import shaping
from compilewatch.db import units
from compilewatch.db.columns.metrics import ASKED_METRICS, FURTHER_METRICS, METRICS, with_test
from compilewatch.db.judge.results import BuildSide, CaseKey
from compilewatch.db.metrics.groups import Groups, floats, row_dicts
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.vocabulary import Metric

SIDES = ("base", "head")
# The column of a trials frame that holds a metric trial by trial, and what it is divided by for the axis.
_PER_TRIAL: dict[Metric, tuple[str, float, str]] = {
    Metric.LATENCY: ("latency_ns", 1e6, "Latency (ms)"),
    Metric.COMPILE_COST: ("trial_compile_cost_ns", 1e9, "Compile cost (s)"),
    Metric.PEAK_MEMORY: ("peak_bytes", 2**20, "Peak memory (MiB)"),
    **{
        metric: (METRICS[metric].column, METRICS[metric].divisor, METRICS[metric].axis_title)
        for metric in (*FURTHER_METRICS, *with_test(ASKED_METRICS))
    },
}
_TRIAL_COLUMNS = ("lane", "value", "low", "high", "strategy", "text", "samples_text", "trial_id")


def shown_metric(metric: Metric) -> Metric:
    """The metric that one trial has: a speedup and a break-even are told by the latencies they come from."""
    return metric if metric in _PER_TRIAL else Metric.LATENCY


def side_trials(trials: pd.DataFrame, side: BuildSide, case: CaseKey) -> pd.DataFrame:
    """The trials of one side of a comparison that are of `case`."""
    return trials[
        trials["build_id"].isin(side.build_ids)
        & trials["run_id"].isin(side.run_ids)
        & (trials["workload_id"] == case.workload_id)
        & (trials["strategy_id"] == case.strategy_id)
    ]


def frame(sides: Sequence[pd.DataFrame], case: CaseKey, metric: Metric) -> pd.DataFrame:
    """One row per trial and lane ("base · default", "base · eager", ...); `value` in the unit of the axis.

    Latencies come with their 5th and 95th percentile and with the eager control of the same process.
    """
    shown = shown_metric(metric)
    rows: list[dict[str, object]] = []
    for name, side in zip(SIDES, sides, strict=True):
        for trial in row_dicts(side):
            rows += _lane_rows(name, trial, case.strategy, shown)
    return pd.DataFrame(rows, columns=list(_TRIAL_COLUMNS))


def _lane_rows(
    side: str, trial: Mapping[str, object], strategy: str, metric: Metric
) -> list[dict[str, object]]:
    column, divisor, _ = _PER_TRIAL[metric]
    low, high = ("latency_p05_ns", "latency_p95_ns") if metric is Metric.LATENCY else (column, column)
    lanes = [(strategy, column, low, high, "samples")]
    if metric is Metric.LATENCY and strategy != EAGER.name:
        control = "control_latency_ns"
        lanes.append((EAGER.name, control, control, control, "control_samples"))
    rows: list[dict[str, object]] = []
    for name, middle, start, end, count in lanes:
        value = shaping.number(trial[middle])
        if value is None:
            continue
        bounds = [shaping.number(trial[bound]) for bound in (start, end)]
        rows.append(
            {
                "lane": f"{side} · {name}",
                "value": value / divisor,
                "low": (value if bounds[0] is None else bounds[0]) / divisor,
                "high": (value if bounds[1] is None else bounds[1]) / divisor,
                "strategy": name,
                "text": verdict_words.figure(metric, value),
                "samples_text": units.count(shaping.number(trial[count])),
                "trial_id": trial["trial_id"],
            }
        )
    return rows


def middles(rows: pd.DataFrame) -> pd.DataFrame:
    """The geometric mean of every lane's trials."""
    of_lane = rows.groupby(["lane", "strategy"], sort=False)
    lanes = Groups(np.asarray(of_lane.ngroup(), dtype=np.int64), of_lane.ngroups)
    return of_lane.size().index.to_frame(index=False).assign(value=lanes.mean(floats(rows["value"])))


@lru_cache(maxsize=64)
def spec(lanes: tuple[str, ...], strategies: tuple[str, ...], metric: Metric) -> style.Spec:
    """A lane per side and strategy over `main` (`frame`) and `middles`."""
    base = alt.Chart(style.data("main"))
    y = alt.Y("lane:N", sort=list(lanes), title=None, axis=style.names_axis())
    x = alt.X(
        "value:Q",
        title=_PER_TRIAL[shown_metric(metric)][2],
        scale=alt.Scale(zero=False, padding=14),
        axis=alt.Axis(tickCount=6),
    )
    colour = style.strategy_colour(strategies, legend=False)
    spread = base.mark_rule(strokeWidth=2, opacity=0.3, aria=False).encode(
        x="low:Q", x2="high", y=y, color=colour
    )
    points = (
        base.mark_point(filled=True, size=90, opacity=0.75)
        .encode(
            x=x,
            y=y,
            color=colour,
            shape=style.strategy_shape(strategies, legend=False),
            tooltip=style.text_tooltip(
                lane="Side", text="Median of the trial", samples_text="Samples (n)", trial_id="Trial"
            ),
        )
        .add_params(style.pick("trial_id"))
    )
    ticks = (
        style.inked("middles")
        .mark_tick(thickness=2.5, size=26, aria=False)
        .encode(x=x, y=y, stroke=style.ink_stroke())
    )
    return style.spec_of(alt.layer(spread, ticks, points).properties(height=46 * len(lanes) + 60))
