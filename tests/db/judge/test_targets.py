"""Budgets met or missed, and honest predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from compilewatch.db.judge.policy import Policy, Target
from compilewatch.db.judge.targets import TargetCheck, check_targets, forecast_crossing
from tests.db.judge.frames import MS, trial
from tests.db.metrics.frames import trials_frame

_RAN = {
    **{"compiled_share": 0.75, "cudagraph_launches": 3, "cudagraph_skips": 1, "recompile_limit_hit": 1},
    **{"cache_bypasses": 2, "gpu_utilization_percent": 90.0},
    **{"cache_hit_rate": 0.9, "compiles_after_ready": 7},
}


def checks(target: dict[str, Any], **fields: Any) -> list[TargetCheck]:
    trials = trials_frame(
        [trial(latency_p95_ns=12 * MS, items_per_iteration=8.0, **_RAN, **fields) for _ in range(3)]
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
        ({"compiled_share": 0.75}, 0.75, True),
        ({"compiled_share": 1.0}, 0.75, False),
        ({"cudagraph_launches": 2}, 3, True),
        ({"cudagraph_launches": 4}, 3, False),
        ({"cudagraph_skips": 1}, 1, True),
        ({"cudagraph_skips": 0}, 1, False),
        ({"recompile_limit_hit": 0}, 1, False),
        ({"cache_bypasses": 1}, 2, False),
        ({"cache_hit_rate": 0.9}, 0.9, True),
        ({"cache_hit_rate": 0.95}, 0.9, False),
        ({"compiles_after_ready": 7}, 7, True),
        ({"compiles_after_ready": 0}, 7, False),
        ({"gpu_utilization_percent": 80}, 90, True),
        ({"gpu_utilization_percent": 95}, 90, False),
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
        (rising(), 30.0, False, "too far ahead to forecast"),
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


def test_a_check_names_its_case_and_says_what_was_found():
    (check,) = checks({"throughput_per_s": 900})
    assert check == TargetCheck(
        workload="bert",
        strategy="default",
        machine_id="m1",
        build_id="old",
        quantity="throughput_per_s",
        limit=900.0,
        value=check.value,
        met=False,
        reason="throughput_per_s is 800, the target is at least 900",
    )
    assert check.value == pytest.approx(800.0)
    (speedup,) = checks({"speedup": 1.5})
    assert (speedup.met, speedup.reason) == (True, "speedup is 1.5, the target is at least 1.5")
    (latency,) = checks({"latency_p95_ns": 11.5 * MS})
    assert latency.reason == "latency_p95_ns is 1.2e+07, the target is at most 1.15e+07"
    (unknown,) = checks({"peak_bytes": 1}, peak_bytes=None)
    assert (unknown.value, unknown.reason) == (None, "peak_bytes is unknown")


def test_the_percentile_is_the_mean_over_trials_that_count_of_each_case():
    rows = [trial(latency_p95_ns=p95 * MS) for p95 in (8, 18)]
    rows += [
        trial(latency_p95_ns=90 * MS, suspect=True),
        trial(latency_p95_ns=90 * MS, numerics_status="fail"),
        trial("gpt", latency_p95_ns=50 * MS),
        trial(build="new", latency_p95_ns=60 * MS),
        trial(machine_id="m2", latency_p95_ns=70 * MS),
        trial(strategy="eager", latency_p95_ns=80 * MS),
        trial("vit", latency_p95_ns=None),
    ]
    found = check_targets(trials_frame(rows), (Target(latency_p95_ns=12 * MS),))
    values = {(c.machine_id, c.build_id, c.workload, c.strategy): (c.value, c.met) for c in found}
    assert values == {
        ("m1", "old", "bert", "default"): (pytest.approx(12 * MS), True),
        ("m1", "old", "gpt", "default"): (50 * MS, False),
        ("m1", "new", "bert", "default"): (60 * MS, False),
        ("m2", "old", "bert", "default"): (70 * MS, False),
        ("m1", "old", "bert", "eager"): (80 * MS, False),
        ("m1", "old", "vit", "default"): (None, None),
    }


def test_nothing_is_checked_without_a_target_or_a_trial():
    assert check_targets(trials_frame([trial()]), ()) == ()
    assert check_targets(trials_frame([]), (Target(speedup=1.0),)) == ()


def test_a_forecast_follows_the_theil_sen_line_and_kendalls_test():
    y = rising(40, noise=0.003)
    log_y, x = np.log(y), np.arange(40)
    slope, intercept = stats.theilslopes(log_y, x)[:2]
    found = forecast_crossing(y, 11.6, at_least=False)
    assert found.points == pytest.approx((np.log(11.6) - intercept - slope * 39) / slope)
    assert found.reason == f"at this trend the target is crossed in about {np.ceil(found.points):.0f} points"
    residual = log_y - slope * x
    halves = np.concatenate([half - half.mean() for half in (residual[:20], residual[20:])])
    pairs = halves[1:] * halves[:-1]
    rho = max((pairs.sum() - pairs[19]) / (halves @ halves), 0.0)
    z = stats.norm.isf(stats.kendalltau(x, log_y).pvalue / 2) * np.sqrt((1 - rho) / (1 + rho))
    assert found.p_value == pytest.approx(2 * stats.norm.sf(z))


def test_neighbours_that_resemble_each_other_make_a_trend_less_sure():
    slow = 10.0 * np.exp(0.002 * np.arange(40) + 0.01 * np.repeat(np.tile([1, -1], 4), 5))
    quick = 10.0 * np.exp(0.002 * np.arange(40) + 0.01 * np.tile([1, -1], 20))
    sure, unsure = (forecast_crossing(y, 30.0, at_least=False).p_value for y in (quick, slow))
    assert sure is not None
    assert unsure is not None
    assert unsure > 10 * sure


def test_twenty_points_are_enough_and_a_fall_meets_a_lower_limit():
    assert forecast_crossing(rising(20, noise=0.001), 10.5, at_least=False).points is not None
    falling = 1.0 / rising(60, noise=0.001)
    found = forecast_crossing(falling, 0.085, at_least=True)
    assert found.points == pytest.approx((np.log(0.1 / 0.085) - 0.002 * 59) / 0.002, abs=3)
    assert found.slope_per_point == pytest.approx(-0.002, abs=2e-4)
    away = forecast_crossing(falling, 0.5, at_least=False)
    assert away.reason == "the trend leads away from the target"
    assert (away.slope_per_point, away.p_value) == (found.slope_per_point, found.p_value)
    assert forecast_crossing(rising(10), 12.0, at_least=False).p_value is None


@pytest.mark.parametrize("limit", [11.0, 30.0])
def test_a_sure_trend_is_told_with_its_p_though_nothing_is_predicted(limit: float):
    known = forecast_crossing(rising(), 12.0, at_least=False)
    found = forecast_crossing(rising(), limit, at_least=False)
    assert known.p_value is not None
    assert known.p_value < 0.01
    assert (found.points, found.slope_per_point, found.p_value) == (
        None,
        known.slope_per_point,
        known.p_value,
    )


def test_an_unsure_trend_is_told_with_its_slope_and_p():
    y = rising(per_point=0.0)
    found = forecast_crossing(y, 10.5, at_least=False)
    assert found.reason == "no sure trend"
    assert found.slope_per_point == pytest.approx(np.expm1(stats.theilslopes(np.log(y)).slope))
    assert found.p_value is not None
    assert found.p_value > Policy().history.p_value
