"""Targets: budgets per workload, met or not, and whether a trend will break them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import scipy
from pandas import DataFrame

from compilewatch.db.judge.change_points import autocorrelation
from compilewatch.db.judge.policy import Policy, Target
from compilewatch.db.judge.results import Result
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.groups import Floats, floats
from compilewatch.db.units import plural

AT_LEAST = (
    *("throughput_per_s", "speedup", "ops_captured"),
    *("compiled_share", "cudagraph_launches", "cache_hit_rate", "gpu_utilization_percent"),
)
"""Quantities that must not fall below their target; all others must not rise above it."""


class TargetCheck(Result):
    """One limit of one case. `met` is None where the value is unknown; a break-even that is never misses its
    target. `value` is in the quantity's own unit.
    """

    workload: str
    strategy: str
    machine_id: str
    build_id: str
    quantity: str
    limit: float
    value: float | None
    met: bool | None
    reason: str


def check_targets(trials: DataFrame, targets: tuple[Target, ...]) -> tuple[TargetCheck, ...]:
    """Check every case of a trials frame against every target that fits it, in the order of the cases."""
    if not targets or trials.empty:
        return ()
    return check_cases(summarize_cases(trials), targets)


def check_cases(cases: DataFrame, targets: tuple[Target, ...]) -> tuple[TargetCheck, ...]:
    """The same of cases that are summed up."""
    checks = []
    for row in cases.to_dict("records"):
        values = {str(name): value for name, value in row.items()}
        for target in targets:
            if target.fits(str(row["workload"]), str(row["strategy"])):
                checks += [_check(values, name, limit) for name, limit in target.limits().items()]
    return tuple(checks)


def _check(values: dict[str, object], quantity: str, limit: float) -> TargetCheck:
    raw = values.get(quantity)
    never = quantity == "break_even_steps" and values["break_even"] == "never"
    value = None if raw is None or raw is pd.NA or raw != raw else float(str(raw))  # noqa: PLR0124
    if never:
        met: bool | None = False
        reason = "compilation never pays off"
    elif value is None:
        met, reason = None, f"{quantity} is unknown"
    else:
        met = value >= limit if quantity in AT_LEAST else value <= limit
        side = "at least" if quantity in AT_LEAST else "at most"
        reason = f"{quantity} is {value:.6g}, the target is {side} {limit:.6g}"
    return TargetCheck(
        **{name: str(values[name]) for name in ("workload", "strategy", "machine_id", "build_id")},
        quantity=quantity,
        limit=limit,
        value=value,
        met=met,
        reason=reason,
    )


class Forecast(Result):
    """When a series will cross its target, in points from now; None where no honest prediction exists."""

    points: float | None
    slope_per_point: float | None
    p_value: float | None
    reason: str


def forecast_crossing(y: Floats, limit: float, *, at_least: bool, policy: Policy | None = None) -> Forecast:
    """Predict when values (one per run, positive, of one level or one drift: cut at changes) cross `limit`.

    Theil-Sen slope of the log values (Sen 1968, J. Am. Statist. Assoc. 63, 1379-1389), its sign tested by
    Kendall's tau, z shrunk for autocorrelation. No prediction from fewer than `history.trend_points` points,
    from a slope that is not significant, away from the target, or further ahead than the series looks back.
    """
    policy = policy or Policy()
    fewest = policy.history.trend_points
    if len(y) < fewest:
        return _no_forecast(f"fewer than {plural(fewest, 'point')}")
    x, log_y = np.arange(len(y), dtype=np.float64), np.log(floats(pd.Series(y)))
    from scipy import stats

    slope, intercept, _, _ = stats.theilslopes(log_y, x)
    p_value = _trend_p(x, log_y, slope, policy)
    if p_value > policy.history.p_value:
        return _no_forecast("no sure trend", slope, p_value)
    now = intercept + slope * x[-1]
    distance = math.log(limit) - now
    if (distance > 0) == at_least:
        return _no_forecast("the target is missed already", slope, p_value)
    ahead = distance / slope if slope else math.inf
    if ahead < 0:
        return _no_forecast("the trend leads away from the target", slope, p_value)
    if ahead > len(y):
        return _no_forecast("too far ahead to forecast", slope, p_value)
    reason = f"at this trend the target is crossed in about {plural(math.ceil(ahead), 'point')}"
    return Forecast(points=float(ahead), slope_per_point=math.expm1(slope), p_value=p_value, reason=reason)


def _trend_p(x: Floats, log_y: Floats, slope: float, policy: Policy) -> float:
    from scipy import stats

    residual = log_y - slope * x
    half = len(residual) // 2
    rho = autocorrelation(residual[:half], residual[half:], policy.history.autocorrelation_limit)
    p_value = float(stats.kendalltau(x, log_y).pvalue)
    z = float(-scipy.special.ndtri(p_value / 2.0)) * math.sqrt((1.0 - rho) / (1.0 + rho))
    return 2.0 * float(scipy.special.ndtr(-z))


def _no_forecast(reason: str, slope: float | None = None, p_value: float | None = None) -> Forecast:
    relative = None if slope is None else math.expm1(slope)
    return Forecast(points=None, slope_per_point=relative, p_value=p_value, reason=reason)
