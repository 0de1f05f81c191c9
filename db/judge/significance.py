"""From t-tests to decisions: false discovery rate, equivalence, intervals, and trials still needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

# Variances of many cases shrunk towards what the cases have in common, and the t-test built on them.
#
# With three trials a side a case's own variance has four degrees of freedom: too few to tell a 3 % change
# from luck. Smyth 2004 (Statistical Applications in Genetics and Molecular Biology 3(1), article 3) takes
# the true variances of all cases as scaled inverse chi-square draws, estimates that prior from the observed
# variances (section 6.2) and uses the posterior mean (section 4). Function names follow his limma package.

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Prior:
    """Scaled inverse chi-square prior of the cases' variances. `df` 0 means: nothing could be learnt."""

    df: float
    variance: float


@dataclass(frozen=True)
class Moderated:
    """Per case: the variance of one trial's log value and its degrees of freedom, NaN and 0 if unknown."""

    variance: Floats
    df: Floats
    prior: Prior


@dataclass(frozen=True)
class TTest:
    """Per case: log(head / base), its standard error, degrees of freedom, two-sided p. NaN if untestable."""

    difference: Floats
    standard_error: Floats
    df: Floats
    p_value: Floats


def trigamma_inverse(y: ArrayLike) -> Floats:
    """x > 0 with trigamma(x) = y, for y > 0. Newton's method on 1/trigamma (Smyth 2004, appendix)."""
    target = np.atleast_1d(np.asarray(y, dtype=np.float64))
    x = 0.5 + 1.0 / target
    for _ in range(50):
        trigamma = scipy.special.polygamma(1, x)
        step = trigamma * (1.0 - trigamma / target) / scipy.special.polygamma(2, x)
        x = x + step
        if np.max(-step / x) < 1e-10:
            break
    # Asymptotic ends of limma's trigammaInverse, where Newton's method runs out of digits.
    x = np.where(target > 1e7, 1.0 / np.sqrt(target), x)
    result: Floats = np.where(target < 1e-6, 1.0 / target, x)
    return result


def fit_prior(variance: Floats, df: Floats, df_limit: float) -> Prior:
    """Prior df and scale from the mean and spread of log variances (Smyth 2004, section 6.2).

    `variance`, `df`: one entry per case; entries with no df or a NaN variance are passed over. Fewer than
    two cases teach nothing. The df is at most `df_limit` and at most all df there are.
    """
    known = np.isfinite(variance) & (df > 0)
    if np.count_nonzero(known) < 2:
        return Prior(0.0, 0.0)
    variance, df = variance[known], df[known]
    half = df / 2.0
    # A variance of exactly zero (identical values) has no logarithm; limma offsets it in the same way.
    floor = max(1e-5 * float(np.median(variance)), np.finfo(np.float64).tiny)
    log_variance = np.log(np.maximum(variance, floor)) - scipy.special.digamma(half) + np.log(half)
    mean = float(np.mean(log_variance))
    excess = float(np.var(log_variance, ddof=1) - np.mean(scipy.special.polygamma(1, half)))
    limit = min(df_limit, float(np.sum(df)))
    if excess <= 0.0:
        # No more spread than chance gives: one variance for all, best estimated by pooling (as limma does).
        return Prior(limit, max(float(np.average(variance, weights=df)), floor))
    prior_df = 2.0 * float(trigamma_inverse(excess)[0])
    scale = float(np.exp(mean + scipy.special.digamma(prior_df / 2.0) - np.log(prior_df / 2.0)))
    return Prior(min(prior_df, limit), scale)


def squeeze(variance: Floats, df: Floats, prior: Prior) -> Floats:
    """Posterior variances (d0 s0^2 + d s^2) / (d0 + d); the prior's where a case has none of its own."""
    own = np.where(df > 0, df * np.nan_to_num(variance), 0.0)
    total = prior.df + df
    with np.errstate(invalid="ignore", divide="ignore"):
        result: Floats = np.where(total > 0, (prior.df * prior.variance + own) / total, np.nan)
    return result


def pool(variance: Floats, df: Floats, other: Floats, other_df: Floats) -> tuple[Floats, Floats]:
    """Average of two variance estimates by their degrees of freedom, and the df of both together."""
    df, other_df = np.where(np.isfinite(variance), df, 0.0), np.where(np.isfinite(other), other_df, 0.0)
    total = df + other_df
    weighted = df * np.nan_to_num(variance) + other_df * np.nan_to_num(other)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, weighted / total, np.nan), total


def moderate(
    variance: Floats, df: Floats, *, df_limit: float, floor: float, outlier_level: float
) -> Moderated:
    """The variance each case is judged with: shrunk, but no lower than its own where cases differ.

    Plain shrinkage lends a noisy case the calm of the others, which breaks the false discovery rate when
    noise differs between cases; never going below a case's own variance wastes power when it does not. So
    a case keeps the excess of its own variance in the proportion 1 - d0 / `df_limit`: all of it when the
    cases have little in common, none of it when they are alike; and always all of it when its own variance
    is an outlier of the prior (upper tail of F(d, d0) below `outlier_level`). The table of
    docs/measured/verdicts.md compares this with both extremes. `floor` is a variance. The df is never more
    than all cases have together, as in limma's eBayes.
    """
    prior = fit_prior(variance, df, df_limit)
    shrunk = squeeze(variance, df, prior)
    own = np.where(df > 0, variance, np.nan)
    weights = np.full_like(shrunk, 1.0 - prior.df / df_limit)
    if prior.df > 0 and prior.variance > 0:
        upper_tail = scipy.special.fdtrc(np.maximum(df, 1.0), prior.df, own / prior.variance)
        weights[upper_tail < outlier_level] = 1.0
    used = np.fmax(shrunk + weights * np.nan_to_num(np.maximum(own - shrunk, 0.0)), floor)
    used = np.where(prior.df + df > 0, used, np.nan)
    total = np.where(np.isnan(used), 0.0, np.minimum(prior.df + df, max(float(np.sum(df)), 1.0)))
    return Moderated(used, total, prior)


def t_test(
    difference: Floats,
    scale: Floats,
    moderated: Moderated,
    *,
    extra_variance: Floats | float = 0.0,
    extra_df: Floats | float = np.inf,
) -> TTest:
    """Two-sided t-test of `difference` with variance scale * v + extra_variance.

    `scale` is 1/nb + 1/nh for two independent samples. The df of the sum is Satterthwaite's (1946,
    Biometrics Bulletin 2(6), 110-114).
    """
    within = scale * moderated.variance
    total = within + extra_variance
    with np.errstate(invalid="ignore", divide="ignore"):
        denominator = within**2 / moderated.df + np.square(extra_variance) / extra_df
        df = np.where(np.asarray(extra_variance) > 0, total**2 / denominator, moderated.df)
        error = np.sqrt(total)
        p_value = 2.0 * scipy.special.stdtr(df, -np.abs(difference / error))
    testable = np.isfinite(difference) & np.isfinite(error) & (moderated.df > 0)
    return TTest(
        difference=difference,
        standard_error=np.where(testable, error, np.nan),
        df=np.where(testable, df, 0.0),
        p_value=np.where(testable, p_value, np.nan),
    )


Z_POWER = 1.645
"""Standard normal quantile of 95 % power."""

FEWEST_DF = 2.0
"""Degrees of freedom below which there is no interval: with one it is thirteen standard errors wide."""

Z_LEVEL = 2.81
"""Standard normal quantile of p = 0.005 two-sided: where Benjamini-Hochberg at 5 % puts the bar when one
case in ten has changed."""


def false_discovery_q(p_value: Floats) -> Floats:
    """Benjamini-Hochberg adjusted p-values over the tested cases; NaN stays NaN and counts for nothing."""
    q_value = np.full_like(p_value, np.nan)
    # By hand, largest first: to import `scipy.stats` takes longer than to judge a thousand cases.
    tested = np.flatnonzero(np.isfinite(p_value))
    tested = tested[np.argsort(p_value[tested])[::-1]]
    of_rank = p_value[tested] * (len(tested) / np.arange(len(tested), 0, -1))
    q_value[tested] = np.minimum.accumulate(of_rank).clip(0.0, 1.0)
    return q_value


def equivalence_p(test: TTest, margin: Floats) -> Floats:
    """p of the two one-sided tests that |log ratio| >= log(1 + margin) (Schuirmann 1987): the larger one."""
    bound = np.log1p(margin)
    with np.errstate(invalid="ignore", divide="ignore"):
        above = scipy.special.stdtr(test.df, -(test.difference + bound) / test.standard_error)
        below = scipy.special.stdtr(test.df, (test.difference - bound) / test.standard_error)
    result: Floats = np.maximum(above, below)
    return result


def interval(test: TTest, confidence: Floats | float) -> tuple[Floats, Floats]:
    """Bounds of the relative change head / base - 1; NaN below `FEWEST_DF` degrees of freedom."""
    half = _half_width(test, confidence)
    return relative_changes(test.difference - half), relative_changes(test.difference + half)


def smallest_visible_change(test: TTest, confidence: Floats | float) -> Floats:
    """The significance threshold: the relative change that would just reach `confidence` by itself; NaN below
    `FEWEST_DF` degrees of freedom.
    """
    return relative_changes(_half_width(test, confidence))


def relative_changes(differences: Floats) -> Floats:
    """Log ratios as relative changes; infinite where no float holds one."""
    with np.errstate(over="ignore"):
        return np.expm1(differences)


def _half_width(test: TTest, confidence: Floats | float) -> Floats:
    with np.errstate(invalid="ignore"):
        half = scipy.special.stdtrit(test.df, 0.5 + confidence / 2.0) * test.standard_error
    return np.where(test.df < FEWEST_DF, np.nan, half)


def power_quantile(power: float) -> float:
    return float(scipy.special.ndtri(power))


def trials_needed(cv: Floats | float, effect: Floats | float, z_power: float = Z_POWER) -> NDArray[np.int64]:
    """Trials a side that show a relative change `effect` at run-to-run CV `cv`, by the normal formula
    2 (cv (2.81 + z_power) / effect)^2, at least 2.
    """
    needed = 2.0 * np.square(np.asarray(cv) * (Z_LEVEL + z_power) / np.asarray(effect))
    whole: NDArray[np.int64] = np.maximum(2, np.ceil(needed)).astype(np.int64)
    return whole
