"""Steady state is shown, not assumed: models that are compiled again and again, in real processes."""

from __future__ import annotations

import pytest

from compilewatch.db.records.trial import FailureKind, Status
from tests.runner.measuring import compiled, measure

pytestmark = pytest.mark.slow
PLAN = {"samples": 10, "max_samples": 10, "min_samples": 2, "warmup_calls": 5, "warmup_ns": 0, "settle_ns": 0}


def measured(name, **changes):
    return measure(name, compiled("eager"), target=f"field_models:{name}", sampling=PLAN, **changes)


@pytest.mark.parametrize("name", ["counter", "scheduled", "new_function_each_call"])
def test_a_recompiling_model_is_measured_once_it_stopped(name):
    trial = measured(name)
    assert trial.status is Status.OK, trial.failure
    compiles = sum(event.count for event in trial.compiler.recompiles)
    cold = trial.cold_start
    # A compilation takes a thousand times as long as a step of microseconds, a stall of the host less.
    slow = [call for call in trial.warmup_ns if call > max(20 * max(trial.samples_ns), 20_000_000)]
    assert len(trial.warmup_ns) >= len(slow) + 5
    assert max(trial.samples_ns) < max(trial.warmup_ns), "the slowest call of the warm-up compiled"
    assert cold.calls_until_steady >= min(compiles, 2)
    assert cold.until_steady_ns >= cold.first_call_ns + sum(slow)
    if name == "counter":
        assert trial.compiler.recompile_limit_hit
        assert cold.calls_until_steady >= 8
        assert cold.until_steady_ns >= cold.first_call_ns + sum(trial.warmup_ns[:7])


def test_a_model_that_never_stops_is_not_steady_and_has_no_latency():
    trial = measured("counter_without_limit", timeout_s=120.0)
    assert trial.status is Status.FAILED
    assert trial.failure.kind is FailureKind.NOT_STEADY
    assert "recompiles on `self.calls` (" in trial.failure.message
    assert "field_models.py" not in trial.failure.message
    assert trial.samples_ns == trial.control_samples_ns == []
    assert trial.timing is None
    assert trial.cold_start.first_call_ns > 0
    assert trial.cold_start.until_steady_ns is None
    assert sum(event.count for event in trial.compiler.recompiles) >= 2
    assert len(trial.warmup_ns) >= 2


def test_what_compiles_between_samples_is_warmed_up_once_more():
    trial = measured("other_lengths_now_and_then")
    assert trial.status is Status.OK, trial.failure
    assert len(trial.warmup_ns) > 10
    assert max(trial.samples_ns) < max(trial.warmup_ns)


def test_a_step_of_a_second_is_measured_before_a_near_deadline_and_keeps_its_samples():
    plan = PLAN | {"samples": 50, "max_samples": 200}
    trial = measure(
        "slow_step", compiled("eager"), target="field_models:slow_step", sampling=plan, timeout_s=45.0
    )
    assert trial.status is Status.OK, trial.failure
    assert trial.sampling.ended_by == "deadline"
    assert min(trial.samples_ns) > 1e9
    assert len(trial.control_samples_ns) == len(trial.samples_ns) >= 1
    assert trial.numerics.status in ("pass", "not_checked")
