"""Decisions against scipy and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compilewatch.db.judge.significance import (
    TTest,
    equivalence_p,
    false_discovery_q,
    interval,
    smallest_visible_change,
    trials_needed,
)


def plain_test(a: np.ndarray, b: np.ndarray) -> TTest:
    """An unmoderated test of log values, as `TTest`."""
    n = len(a)
    difference = b.mean() - a.mean()
    error = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / n)
    df = 2.0 * n - 2
    p_value = 2 * stats.t.sf(abs(difference / error), df)
    return TTest(np.array([difference]), np.array([error]), np.array([df]), np.array([p_value]))


@pytest.fixture(params=range(6))
def samples(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(request.param)
    return generator.normal(0, 0.01, 5), generator.normal(0.004 * request.param, 0.01, 5)


@given(
    st.lists(st.one_of(st.just(float("nan")), st.floats(min_value=0, max_value=1)), min_size=1, max_size=40)
)
def test_adjusted_p_values_are_those_of_statsmodels_and_missing_ones_count_for_nothing(values: list[float]):
    from statsmodels.stats.multitest import multipletests

    p_value = np.array(values)
    tested = ~np.isnan(p_value)
    found = false_discovery_q(p_value)
    assert np.array_equal(np.isnan(found), ~tested)
    if tested.any():
        assert found[tested] == pytest.approx(multipletests(p_value[tested], method="fdr_bh")[1])


def test_equivalence_is_that_of_statsmodels(samples: tuple[np.ndarray, np.ndarray]):
    from statsmodels.stats.weightstats import ttost_ind

    a, b = samples
    bound = np.log1p(0.03)
    expected = ttost_ind(b, a, -bound, bound)[0]
    assert equivalence_p(plain_test(a, b), np.array([0.03]))[0] == pytest.approx(expected)


def test_interval_is_that_of_statsmodels(samples: tuple[np.ndarray, np.ndarray]):
    from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

    a, b = samples
    low, high = interval(plain_test(a, b), 0.95)
    expected = CompareMeans(DescrStatsW(b), DescrStatsW(a)).tconfint_diff(alpha=0.05)
    assert (low[0], high[0]) == (pytest.approx(np.expm1(expected[0])), pytest.approx(np.expm1(expected[1])))


def test_threshold_is_the_change_whose_interval_just_reaches_zero(samples: tuple[np.ndarray, np.ndarray]):
    test = plain_test(*samples)
    at_threshold = TTest(
        np.log1p(smallest_visible_change(test, 0.95)), test.standard_error, test.df, test.p_value
    )
    assert interval(at_threshold, 0.95)[0][0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("cv", "effect", "expected"), [(0.01, 0.03, 5), (0.02, 0.05, 7), (0.03, 0.05, 15)])
def test_trials_needed_follows_the_normal_formula(cv: float, effect: float, expected: int):
    """By hand: 2 (cv 4.455 / effect)^2 = 4.41, 6.35, 14.29."""
    assert int(trials_needed(cv, effect)) == expected
