"""The targets of one series, and when a trend will cross them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pandas import DataFrame

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.history.series import SeriesHistory
from compilewatch.db.judge.policy import Policy, Target
from compilewatch.db.judge.targets import AT_LEAST, Forecast, forecast_crossing
from compilewatch.db.metrics.groups import Floats, floats
from compilewatch.db.records.vocabulary import Metric

_BESIDE = {Metric.LATENCY: ("latency_p95_ns", "throughput_per_s")}
"""Quantities that the history of another metric tells of too."""


@dataclass(frozen=True)
class TargetOutlook:
    """A limit on this series, and when it will be crossed as far as that can be said."""

    quantity: str
    limit: float
    at_least: bool
    forecast: Forecast


def target_outlooks(
    points: DataFrame, series: SeriesHistory, targets: tuple[Target, ...], policy: Policy
) -> list[TargetOutlook]:
    """Every limit on this series with its forecast, read from the points since the last change."""
    start = series.segments[-1].start if series.segments else 0
    newest = points.iloc[-1]
    outlooks = []
    for target in targets:
        if not target.fits(str(newest["workload"]), str(newest["strategy"])):
            continue
        for quantity in (METRICS[series.metric].column, *_BESIDE.get(series.metric, ())):
            limit = target.limits().get(quantity)
            if limit is not None:
                values = floats(points[quantity].iloc[start:])
                at_least = quantity in AT_LEAST
                forecast = _forecast(values[np.isfinite(values)], limit, at_least=at_least, policy=policy)
                outlooks.append(TargetOutlook(quantity, limit, at_least, forecast))
    return outlooks


def _forecast(values: Floats, limit: float, *, at_least: bool, policy: Policy) -> Forecast:
    """A limit of 0, nothing at all, is met or missed: no trend leads to it."""
    if limit > 0:
        return forecast_crossing(values[values > 0], limit, at_least=at_least, policy=policy)
    state = "missed" if values[-1:].sum() > 0 else "met"
    reason = f"{state} by the newest run" if len(values) else "unknown"
    return Forecast(points=None, slope_per_point=None, p_value=None, reason=reason)
