"""Speedup over trials: golden numbers and what must always hold."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.errors import UnitError
from db.metrics.intervals import Method
from db.metrics.speedup import Estimate, speedup_over_trials

_latencies = st.lists(st.floats(1.0, 1e12), min_size=1, max_size=15)


def test_speedup_is_the_median_of_the_trials_own_ratios() -> None:
    # ratios 2, 1.5, 3; pooled medians would say 30 / 15 = 2 from three other pairs
    found = speedup_over_trials([20, 30, 45], [10, 20, 15])
    logs = [math.log(2), math.log(1.5), math.log(3)]
    mean = sum(logs) / 3
    half = 4.302653 * math.sqrt(sum((x - mean) ** 2 for x in logs) / 2 / 3)
    assert (found.value, found.trials, found.method) == (2, 3, Method.STUDENT_T)
    assert (found.low, found.high) == pytest.approx((math.exp(mean - half), math.exp(mean + half)), rel=1e-6)


def test_pairing_removes_what_both_sides_share() -> None:
    # processes differ three times, ratios by 2 %
    eager, compiled = [100, 204, 294, 100, 200], [50, 100, 150, 50, 100]
    found = speedup_over_trials(eager, compiled)
    assert found.value == 2
    assert found.low is not None
    assert found.low > 1.9


def test_the_method_changes_at_twenty_trials_and_one_trial_has_no_interval() -> None:
    methods = [speedup_over_trials([3.0] * n, [2.0] * n).method for n in (1, 2, 19, 20)]
    assert methods == [Method.NONE, Method.STUDENT_T, Method.STUDENT_T, Method.BOOTSTRAP]
    assert speedup_over_trials([3], [2]) == Estimate(1.5, None, None, 1, Method.NONE)


@given(_latencies)
def test_speedup_against_itself_is_one(latencies: list[float]) -> None:
    found = speedup_over_trials(latencies, latencies, resamples=50)
    assert found.value == 1
    if len(latencies) > 1:
        assert found.low == found.high == 1


@given(st.lists(st.tuples(st.floats(1.0, 1e9), st.floats(1.0, 1e9)), min_size=2, max_size=9))
def test_swapping_the_sides_turns_the_interval_over(pairs: list[tuple[float, float]]) -> None:
    eager, compiled = [list(side) for side in zip(*pairs, strict=True)]
    there, back = speedup_over_trials(eager, compiled), speedup_over_trials(compiled, eager)
    assert there.low is not None
    assert back.high is not None
    if len(pairs) % 2:  # the median of an even number of ratios is an arithmetic mean of two
        assert there.value == pytest.approx(1 / back.value)
        assert there.low == pytest.approx(1 / back.high)


@pytest.mark.parametrize(
    ("eager", "compiled"),
    [
        ([], []),
        ([1, 2], [1]),
        ([1, 0], [1, 1]),
        ([1, 2], [1, -1]),
        ([1, math.nan], [1, 1]),
        ([1], [math.inf]),
    ],
)
def test_bad_latencies_are_refused(eager: list[float], compiled: list[float]) -> None:
    with pytest.raises(UnitError):
        speedup_over_trials(eager, compiled)
