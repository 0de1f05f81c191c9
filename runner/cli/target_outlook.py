"""The targets of one series, and when a trend will cross them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pandas import DataFrame

from db.metrics.groups import floats
from db.verdicts.history import SeriesHistory
from db.verdicts.policy import Policy
from db.verdicts.targets import AT_LEAST, Forecast, Target, forecast_crossing
from db.verdicts.vocabulary import Metric

TARGET_QUANTITIES: dict[Metric, dict[str, str]] = {
    Metric.LATENCY: {"latency_p95_ns": "latency_within_p95_ns", "throughput_per_s": "throughput_per_s"},
    Metric.SPEEDUP: {"speedup": "speedup"},
    Metric.COMPILE_COST: {"compile_cost_ns": "compile_cost_ns"},
    Metric.PEAK_MEMORY: {"peak_bytes": "peak_bytes"},
    Metric.BREAK_EVEN: {"break_even_steps": "break_even_steps"},
}
"""By metric the quantities a target may limit, and the column of a point that holds each."""


@dataclass(frozen=True)
class TargetOutlook:
    """A limit on this series, and when it will be crossed as far as that can be said."""

    quantity: str
    limit: float
    at_least: bool
    forecast: Forecast


def target_outlooks(
    points: DataFrame, judged: SeriesHistory, targets: tuple[Target, ...], policy: Policy
) -> list[TargetOutlook]:
    """Every limit on this series with its forecast, read from the points since the last change."""
    start = judged.segments[-1].start if judged.segments else 0
    newest = points.iloc[-1]
    found = []
    for target in targets:
        if not target.fits(str(newest["workload"]), str(newest["strategy"])):
            continue
        for quantity, column in TARGET_QUANTITIES.get(judged.metric, {}).items():
            limit = target.limits().get(quantity)
            if limit is not None:
                values = floats(points[column].iloc[start:])
                usable = values[np.isfinite(values) & (values > 0)]
                at_least = quantity in AT_LEAST
                forecast = forecast_crossing(usable, limit, at_least=at_least, policy=policy)
                found.append(TargetOutlook(quantity, limit, at_least, forecast))
    return found
