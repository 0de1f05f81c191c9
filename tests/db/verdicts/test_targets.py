"""Budgets met or missed, and honest predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from db.verdicts.targets import Target, TargetCheck, check_targets, forecast_crossing
from tests.db.metrics.frames import trials_frame
from tests.db.verdicts.frames import MS, trial


def checks(target: dict[str, Any], **fields: Any) -> list[TargetCheck]:
    trials = trials_frame(
        [trial(latency_p95_ns=12 * MS, items_per_iteration=8.0, **fields) for _ in range(3)]
    )
    return list(check_targets(trials, (Target.model_validate(target),)))


@pytest.mark.parametrize(
    ("target", "value", "met"),
    [
        ({"latency_p95_ns": 13 * MS}, 12 * MS, True),
        ({"latency_p95_ns": 11 * MS}, 12 * MS, False),
        ({"throughput_per_s": 700}, 800, True),
        ({"throughput_per_s": 900}, 800, False),
        ({"speedup": 1.4}, 1.5, True),
        ({"speedup": 1.6}, 1.5, False),
        ({"compile_cost_ns": 9e9}, 8e9, True),
        ({"compile_cost_ns": 7e9}, 8e9, False),
        ({"peak_bytes": 2**30}, 2**30, True),
        ({"break_even_steps": 1600}, 1600, True),
        ({"break_even_steps": 1599}, 1600, False),
    ],
)
def test_each_limit_is_checked_in_its_own_direction(target: dict[str, float], value: float, met: bool):
    (check,) = checks(target)
    assert check.value == pytest.approx(value)
    assert check.met is met


def test_a_break_even_that_is_never_misses_its_target():
    (check,) = checks({"break_even_steps": 1e9}, control_latency_ns=9 * MS)
    assert (check.met, check.value, check.reason) == (False, None, "compilation never pays off")


def test_what_is_unknown_is_neither_met_nor_missed():
    (check,) = checks({"peak_bytes": 1}, peak_bytes=None)
    assert check.met is None


def test_patterns_choose_the_cases():
    assert checks({"workload": "resnet*", "speedup": 1.0}) == []
    assert len(checks({"workload": "ber?", "strategy": "def*", "speedup": 1.0, "peak_bytes": 1})) == 2


def test_a_target_without_a_limit_and_a_misspelt_one_are_refused():
    with pytest.raises(ValidationError, match="at least one limit"):
        Target(workload="bert")
    with pytest.raises(ValidationError, match="latency_p95_ms"):
        Target.model_validate({"latency_p95_ms": 3})


def rising(n: int = 60, per_point: float = 0.002, noise: float = 0.004) -> np.ndarray:
    generator = np.random.default_rng(0)
    return 10.0 * np.exp(per_point * np.arange(n) + noise * generator.standard_normal(n))


def test_a_clear_trend_is_extended_to_the_target():
    y = rising()
    found = forecast_crossing(y, 12.0, at_least=False)
    slope = stats.theilslopes(np.log(y), np.arange(60)).slope
    assert found.slope_per_point == pytest.approx(np.expm1(slope))
    assert found.points == pytest.approx((np.log(1.2) - 0.002 * 59) / 0.002, abs=6)


@pytest.mark.parametrize(
    ("y", "limit", "at_least", "reason"),
    [
        (rising(10), 12.0, False, "fewer than 20 points"),
        (rising(per_point=0.0), 12.0, False, "no sure trend"),
        (rising(), 30.0, False, "too far ahead to say"),
        (rising(), 9.0, True, "the trend leads away from the target"),
        (rising(), 11.0, False, "the target is missed already"),
    ],
)
def test_no_honest_prediction_is_none(y: np.ndarray, limit: float, at_least: bool, reason: str):
    found = forecast_crossing(y, limit, at_least=at_least)
    assert (found.points, found.reason) == (None, reason)


def test_a_pattern_does_not_meet_the_machines_canaries_unless_it_names_them():
    assert checks({"workload": "*", "latency_p95_ns": 1}, workload="canary-gemm", strategy="eager") == []
    (named,) = checks({"workload": "canary-*", "latency_p95_ns": 1}, workload="canary-gemm", strategy="eager")
    assert named.met is False
