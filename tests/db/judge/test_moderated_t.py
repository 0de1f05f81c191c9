"""Shrunken variances against independent computations of Smyth's formulas."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from compilewatch.db.judge.significance import (
    Prior,
    fit_prior,
    moderate,
    pool,
    squeeze,
    t_test,
    trigamma_inverse,
)

DF_LIMIT = 50.0


@pytest.mark.parametrize("y", [1e-9, 1e-4, 0.01, 0.3, 1.0, 1.6449340668482264, 7.0, 250.0, 1e5, 1e9])
def test_trigamma_inverse_agrees_with_a_root_found_at_fifty_digits(y: float):
    with mpmath.workdps(50):
        start = mpmath.mpf(1) / y if y < 1 else 1 / mpmath.sqrt(y)
        root = mpmath.findroot(lambda x: mpmath.polygamma(1, x) - y, start)
    assert trigamma_inverse(y)[0] == pytest.approx(float(root), rel=2e-7)


def test_trigamma_of_one_is_pi_squared_over_six():
    assert trigamma_inverse(np.pi**2 / 6)[0] == pytest.approx(1.0)


def moments_by_mpmath(variances: list[float], df: list[float]) -> tuple[float, float]:
    """d0 and s0^2 of Smyth 2004, section 6.2, written out in another arithmetic."""
    with mpmath.workdps(40):
        e = [
            mpmath.log(s) - mpmath.digamma(mpmath.mpf(d) / 2) + mpmath.log(mpmath.mpf(d) / 2)
            for s, d in zip(variances, df, strict=True)
        ]
        mean = sum(e) / len(e)
        target = sum((x - mean) ** 2 for x in e) / (len(e) - 1)
        target -= sum(mpmath.polygamma(1, mpmath.mpf(d) / 2) for d in df) / len(df)
        half = mpmath.findroot(lambda x: mpmath.polygamma(1, x) - target, 1.0)
        return float(2 * half), float(mpmath.exp(mean + mpmath.digamma(half) - mpmath.log(half)))


def test_prior_agrees_with_the_formulas_in_fifty_digit_arithmetic():
    variances = [0.13, 1.9, 0.4, 6.1, 0.02, 0.9, 0.33, 2.2, 0.05, 14.0]
    df = [4.0, 4.0, 3.0, 4.0, 4.0, 2.0, 4.0, 4.0, 4.0, 4.0]
    prior = fit_prior(np.array(variances), np.array(df), DF_LIMIT)
    d0, s0 = moments_by_mpmath(variances, df)
    assert (prior.df, prior.variance) == (pytest.approx(d0, rel=1e-6), pytest.approx(s0, rel=1e-6))


def test_prior_recovers_the_distribution_the_variances_were_drawn_from():
    generator = np.random.default_rng(4)
    true = 6.0 * 2.5 / generator.chisquare(6.0, 200_000)
    observed = true * generator.chisquare(4.0, 200_000) / 4.0
    prior = fit_prior(observed, np.full(200_000, 4.0), DF_LIMIT)
    assert prior.df == pytest.approx(6.0, rel=0.05)
    assert prior.variance == pytest.approx(2.5, rel=0.02)


def test_equal_variances_share_all_they_have_up_to_the_limit():
    prior = fit_prior(np.full(100, 0.25), np.full(100, 4.0), DF_LIMIT)
    assert (prior.df, prior.variance) == (DF_LIMIT, 0.25)
    few = fit_prior(np.full(3, 0.25), np.full(3, 4.0), DF_LIMIT)
    assert few.df == 12.0  # no more than the three cases have together


def test_one_case_teaches_nothing_and_is_an_ordinary_t_test():
    generator = np.random.default_rng(1)
    a, b = generator.normal(0, 1, 5), generator.normal(0.5, 1, 5)
    variance = np.array([(a.var(ddof=1) + b.var(ddof=1)) / 2])
    moderated = moderate(variance, np.array([8.0]), df_limit=DF_LIMIT, floor=0.0, outlier_level=0.01)
    test = t_test(np.array([b.mean() - a.mean()]), np.array([2 / 5]), moderated)
    expected = stats.ttest_ind(b, a)
    assert test.p_value[0] == pytest.approx(expected.pvalue)
    assert test.df[0] == expected.df


def test_posterior_variance_is_the_weighted_mean_of_prior_and_own():
    variance, df = np.array([4.0, np.nan]), np.array([2.0, 0.0])
    prior = fit_prior(np.array([1.0, 1.1, 0.9, 5.0]), np.full(4, 8.0), DF_LIMIT)
    found = squeeze(variance, df, prior)
    assert found[0] == pytest.approx((prior.df * prior.variance + 2 * 4.0) / (prior.df + 2))
    assert found[1] == pytest.approx(prior.variance)


def test_a_noisy_case_among_calm_ones_keeps_its_own_variance():
    variance = np.append(np.full(299, 1.0) * np.linspace(0.8, 1.2, 299), 40.0)
    moderated = moderate(variance, np.full(300, 4.0), df_limit=DF_LIMIT, floor=0.0, outlier_level=0.01)
    assert moderated.variance[-1] == 40.0
    assert moderated.variance[0] == pytest.approx(1.0, abs=0.2)


def test_no_variance_falls_below_the_floor():
    moderated = moderate(np.zeros(10), np.full(10, 4.0), df_limit=DF_LIMIT, floor=4e-6, outlier_level=0.01)
    assert np.all(moderated.variance == 4e-6)


def test_pooled_variance_is_the_mean_by_degrees_of_freedom():
    variance, df = pool(
        np.array([1.0, np.nan]), np.array([4.0, 0.0]), np.array([2.0, 3.0]), np.array([12.0, 5.0])
    )
    assert variance == pytest.approx([(4 * 1 + 12 * 2) / 16, 3.0])
    assert df.tolist() == [16.0, 5.0]


def test_extra_variance_takes_satterthwaites_df():
    """Against Welch's test: two independent variances are the same sum of two estimates."""
    generator = np.random.default_rng(2)
    a, b = generator.normal(0, 1, 6), generator.normal(0, 3, 4)
    own = moderate(
        np.array([a.var(ddof=1)]), np.array([5.0]), df_limit=DF_LIMIT, floor=0.0, outlier_level=0.01
    )
    test = t_test(
        np.array([a.mean() - b.mean()]), np.array([1 / 6]), own, extra_variance=b.var(ddof=1) / 4, extra_df=3
    )
    expected = stats.ttest_ind(a, b, equal_var=False)
    assert (test.df[0], test.p_value[0]) == (pytest.approx(expected.df), pytest.approx(expected.pvalue))


@given(st.floats(min_value=1e-5, max_value=1e5))
def test_trigamma_inverse_agrees_with_brents_method(y: float):
    def excess(log_x: float) -> float:
        return float(mpmath.polygamma(1, mpmath.exp(log_x))) - y

    root = float(np.exp(optimize.brentq(excess, -15.0, 15.0)))
    assert trigamma_inverse(y)[0] == pytest.approx(root, rel=1e-6)


def test_one_degree_of_freedom_counts_and_none_does_not():
    prior = Prior(3.0, 2.0)
    found = squeeze(np.array([6.0, 6.0, 6.0]), np.array([1.0, 0.0, 9.0]), prior)
    assert found == pytest.approx([(3 * 2 + 6) / 4, 2.0, (3 * 2 + 9 * 6) / 12])
    nothing = squeeze(np.array([6.0, np.nan]), np.array([1.0, 0.0]), Prior(0.0, 0.0))
    assert nothing == pytest.approx([6.0, np.nan], nan_ok=True)


def test_one_degree_of_freedom_in_all_is_an_estimate():
    variance, df = pool(
        np.array([2.0, np.nan, np.nan]),
        np.array([1.0, 0.0, 0.0]),
        np.array([np.nan, 3.0, np.nan]),
        np.ones(3),
    )
    assert variance == pytest.approx([2.0, 3.0, np.nan], nan_ok=True)
    assert df.tolist() == [1.0, 1.0, 0.0]
