"""Intervals against hand-computed numbers, exact distributions and plain resampling."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compilewatch.db.metrics.groups import Groups, Means, Method, means_over_trials, repayment_intervals


def one_group(values: list[float]) -> Means:
    return means_over_trials(Groups(np.zeros(len(values), dtype=np.int64), 1), np.array(values))


def test_it_is_students_t_interval_on_logarithms() -> None:
    # 1, 2, 4: mean log is log 2, standard deviation log 2; half width log 2 x 4.302653 / sqrt 3
    found = one_group([4, 1, 2])
    assert (found.value[0], found.n[0], found.method) == (pytest.approx(2), 3, [Method.STUDENT_T])
    assert found.low[0] == pytest.approx(2 ** (1 - 2.484138), rel=1e-5)
    assert found.high[0] == pytest.approx(2 ** (1 + 2.484138), rel=1e-5)


def test_values_that_are_not_all_above_0_have_the_arithmetic_mean_and_its_interval() -> None:
    # mean 0, standard deviation 10, t(0.975, 2) = 4.302653: 0 -+ 4.302653 x 10 / sqrt 3
    found = one_group([-10, 10, 0])
    assert found.value[0] == 0
    assert (found.low[0], found.high[0]) == pytest.approx((-24.84138, 24.84138), abs=1e-4)


def test_two_trials_have_no_interval() -> None:
    two = one_group([4, 9])
    assert (two.value[0], two.n[0], two.method) == (pytest.approx(6), 2, [Method.NONE])
    assert math.isnan(two.low[0])
    assert math.isnan(two.high[0])


def test_one_trial_has_no_interval_and_none_has_no_value() -> None:
    one = one_group([7])
    assert one.value[0] == 7
    assert math.isnan(one.low[0])
    assert math.isnan(one.high[0])
    assert one.method == [Method.NONE]
    none = one_group([math.nan, math.nan])
    assert none.n[0] == 0
    assert math.isnan(none.value[0])


@pytest.mark.parametrize("trials", [3, 5, 10, 20, 50])
def test_an_interval_holds_the_true_mean_about_as_often_as_it_says(trials: int) -> None:
    series = 2000
    values = np.random.default_rng(trials).lognormal(0, 0.02, series * trials)
    groups = Groups(np.repeat(np.arange(series), trials), series)
    found = means_over_trials(groups, values)
    assert np.mean((found.low <= 1) & (found.high >= 1)) >= 0.93


_values = st.lists(st.floats(1.0, 1e12), min_size=3, max_size=24)


@given(_values)
def test_an_interval_holds_its_mean_and_ignores_order_and_neighbours(values: list[float]) -> None:
    alone = one_group(values)
    assert alone.low[0] <= alone.value[0] <= alone.high[0]
    assert alone.value[0] == pytest.approx(stats.gmean(values), rel=1e-9)
    codes = np.array([1] * len(values) + [0] * 12 + [2])
    mixed = np.concatenate([values[::-1], np.arange(1.0, 13.0), [5.0]])
    among = means_over_trials(Groups(codes, 3), mixed)
    assert (among.low[1], among.high[1]) == pytest.approx((alone.low[0], alone.high[0]), rel=1e-9)


def repayment(cost: list[float], saved: list[float]) -> tuple[float, float]:
    groups = Groups(np.zeros(len(cost), dtype=np.int64), 1)
    ends = repayment_intervals(groups, np.array(cost), np.array(saved))
    return float(ends.low[0]), float(ends.high[0])


def test_fiellers_interval_with_a_certain_saving_is_the_t_interval_of_the_cost() -> None:
    # cost 10, standard error 1 / sqrt 3, t(0.975, 2) = 4.302653, saving exactly 2
    assert repayment([9, 10, 11], [2, 2, 2]) == pytest.approx(
        ((10 - 2.484138) / 2, (10 + 2.484138) / 2), rel=1e-6
    )


def test_fiellers_interval_is_open_where_the_saving_may_be_none() -> None:
    low, high = repayment([10, 11, 12], [-1, 0.5, 2])
    assert math.isinf(high)
    assert 1 <= low < 22


def test_fiellers_interval_of_two_trials_is_none() -> None:
    assert all(math.isnan(end) for end in repayment([9, 11], [2, 2]))


@pytest.mark.parametrize(
    ("cost", "accepted", "low"),
    [
        # the t test accepts up to 0.68 steps and from 3.35 on; before the first step is no repayment
        ([1, 2, 3], [False, False, False, True, True], 3.351076),
        # up to 1.04 steps and from 9.05 on: the first step is among them
        ([1, 2, 4], [True, False, False, False, False], 1),
    ],
)
def test_fiellers_open_interval_leaves_out_what_ends_before_the_first_step(
    cost: list[float], accepted: list[bool], low: float
) -> None:
    saved = [2.0, 4.0, 5.0]
    p_values = [
        stats.ttest_1samp([c - steps * s for c, s in zip(cost, saved, strict=True)], 0).pvalue
        for steps in range(1, 6)
    ]
    assert [p > 0.05 for p in p_values] == accepted
    assert repayment(cost, saved) == (pytest.approx(low, rel=1e-6), math.inf)


def test_fiellers_interval_is_never_where_compiled_is_slower_in_every_way() -> None:
    assert repayment([10, 11, 12], [-1, -1.01, -0.99]) == (math.inf, math.inf)
    assert repayment([10, 11, 12], [0, 0, 0]) == (math.inf, math.inf)
    assert all(math.isnan(end) for end in repayment([10], [1]))
    assert all(math.isnan(end) for end in repayment([10, math.nan], [1, 2]))


@given(
    st.lists(st.tuples(st.floats(0.1, 1000), st.floats(-5, 20)), min_size=3, max_size=8),
    st.floats(1, 1e4),
)
def test_fiellers_interval_is_the_set_that_the_t_test_accepts(
    pairs: list[tuple[float, float]], steps: float
) -> None:
    cost, saved = np.array(pairs).T
    low, high = repayment(list(cost), list(saved))
    left_over = cost - steps * saved
    error = left_over.std(ddof=1) / math.sqrt(len(cost))
    bar = stats.t.ppf(0.975, len(cost) - 1) * error
    distance = abs(left_over.mean()) - bar
    # at the very edge rounding decides, and a saving below zero is repaid by no number of steps
    if abs(distance) > 1e-6 * (bar + abs(left_over.mean())) and math.isfinite(low) and distance < 0:
        assert low <= steps * (1 + 1e-9)
        assert steps <= high * (1 + 1e-9)


def test_costs_of_nothing_and_of_much_have_a_mean_and_an_interval_without_a_warning() -> None:
    """Arithmetic, as one is 0: no figure of theirs is an exponent."""
    groups = Groups.by(pd.DataFrame({"key": [1, 1, 1]}), ["key"])
    means = means_over_trials(groups, np.array([0.0, 0.0, 3_000.0]))
    assert means.value.tolist() == [1_000.0]
    # By hand: t(.975, 2) = 4.302653 times the standard error 1,000.
    assert [means.low[0], means.high[0]] == pytest.approx([1_000 - 4_302.653, 1_000 + 4_302.653], abs=0.01)
