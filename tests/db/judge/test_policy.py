"""Every constant has a meaning, and a wrong configuration is refused by name."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from compilewatch.db.judge.policy import Override, Policy, Thresholds
from compilewatch.db.records.vocabulary import Metric


def test_the_last_fitting_override_wins_and_the_margin_follows_the_effect():
    policy = Policy(
        overrides=(
            Override(minimum_effect=0.04),
            Override(workload="bert*", metric=Metric.LATENCY, minimum_effect=0.1, unchanged_margin=0.2),
            Override(workload="bert*", strategy="default+*", minimum_effect=0.01),
        )
    )
    assert policy.for_case("mlp", "default", Metric.LATENCY) == Thresholds(
        minimum_effect=0.04, unchanged_margin=0.04
    )
    assert policy.for_case("bert-base", "default", Metric.LATENCY).minimum_effect == 0.1
    assert policy.for_case("bert-base", "default", Metric.SPEEDUP).minimum_effect == 0.04
    assert policy.for_case("bert-base", "default+dynamic", Metric.LATENCY) == Thresholds(
        minimum_effect=0.01, unchanged_margin=0.2
    )


def test_one_metric_can_be_given_without_the_others():
    policy = Policy(thresholds={Metric.LATENCY: {"minimum_effect": 0.1, "unchanged_margin": 0.1}})
    assert policy.thresholds[Metric.LATENCY].minimum_effect == 0.1
    assert policy.thresholds[Metric.PEAK_MEMORY] == Policy().thresholds[Metric.PEAK_MEMORY]


def test_a_margin_asked_for_is_the_minimum_effect_of_latency_and_speedup():
    policy = Policy(overrides=(Override(minimum_effect=0.2),)).with_margin(0.05)
    assert policy.for_case("any", "default", Metric.LATENCY) == Thresholds(
        minimum_effect=0.05, unchanged_margin=0.05
    )
    assert policy.for_case("any", "default", Metric.COMPILE_COST).minimum_effect == 0.2
    assert policy.with_margin(0.01).for_case("any", "default", Metric.SPEEDUP) == Thresholds(
        minimum_effect=0.01, unchanged_margin=0.03
    )


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({"minimum_trails": 5}, "minimum_trails"),
        ({"minimum_trials": 1}, "minimum_trials"),
        ({"false_discovery_rate": 5}, "false_discovery_rate"),
        ({"thresholds": {"latency": {"minimum_effect": 0.05, "unchanged_margin": 0.03}}}, "unchanged_margin"),
        ({"thresholds": {"graph_breaks": {"minimum_effect": 1, "unchanged_margin": 1}}}, "compared exactly"),
        ({"overrides": [{"workload": "bert"}]}, "an override needs minimum_effect or unchanged_margin"),
        ({"overrides": [{"metric": "numerics", "minimum_effect": 0.1}]}, "numerics is compared exactly and"),
        ({"overrides": [{"minimum_effect": 0.1, "unchanged_margin": 0.05}]}, "at least minimum_effect"),
        ({"history": {"window": 3}}, "window"),
    ],
)
def test_a_wrong_policy_is_refused_by_name(content: dict[str, object], named: str):
    with pytest.raises(ValidationError, match=named):
        Policy.model_validate(content)


def test_an_override_fits_by_workload_strategy_and_metric():
    override = Override(workload="bert*", strategy="def*", metric=Metric.LATENCY, unchanged_margin=0.1)
    assert override.fits("bert-base", "default", Metric.LATENCY)
    for other in (
        ("mlp", "default", Metric.LATENCY),
        ("bert-base", "max-autotune", Metric.LATENCY),
        ("bert-base", "default", Metric.SPEEDUP),
    ):
        assert not override.fits(*other)
    assert Override(unchanged_margin=0.1).fits("any", "thing", Metric.SPEEDUP)
    assert Override(minimum_effect=0.1, unchanged_margin=0.1).unchanged_margin == 0.1
