"""From t-tests to decisions: false discovery rate, equivalence, intervals, and trials still needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from db.verdicts.moderated_t import Floats, TTest

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
    tested = np.isfinite(p_value)
    if tested.any():
        q_value[tested] = stats.false_discovery_control(p_value[tested], method="bh")
    return q_value


def equivalence_p(test: TTest, margin: Floats) -> Floats:
    """p of the two one-sided tests that |log ratio| >= log(1 + margin) (Schuirmann 1987): the larger one."""
    bound = np.log1p(margin)
    with np.errstate(invalid="ignore", divide="ignore"):
        above = special.stdtr(test.df, -(test.difference + bound) / test.standard_error)
        below = special.stdtr(test.df, (test.difference - bound) / test.standard_error)
    result: Floats = np.maximum(above, below)
    return result


def interval(test: TTest, confidence: float) -> tuple[Floats, Floats]:
    """Bounds of the relative change head / base - 1; NaN below `FEWEST_DF` degrees of freedom."""
    half = _half_width(test, confidence)
    return np.expm1(test.difference - half), np.expm1(test.difference + half)


def smallest_visible_change(test: TTest, confidence: float) -> Floats:
    """The significance threshold: the relative change that would just reach `confidence` by itself; NaN below
    `FEWEST_DF` degrees of freedom.
    """
    return np.expm1(_half_width(test, confidence))


def _half_width(test: TTest, confidence: float) -> Floats:
    with np.errstate(invalid="ignore"):
        half = special.stdtrit(test.df, 0.5 + confidence / 2.0) * test.standard_error
    return np.where(test.df < FEWEST_DF, np.nan, half)


def power_quantile(power: float) -> float:
    """The standard normal quantile of this power."""
    return float(special.ndtri(power))


def trials_needed(cv: Floats | float, effect: Floats | float, z_power: float = Z_POWER) -> NDArray[np.int64]:
    """Trials a side that show a relative change `effect` at run-to-run CV `cv`, by the normal formula
    2 (cv (2.81 + z_power) / effect)^2, at least 2.
    """
    needed = 2.0 * np.square(np.asarray(cv) * (Z_LEVEL + z_power) / np.asarray(effect))
    whole: NDArray[np.int64] = np.maximum(2, np.ceil(needed)).astype(np.int64)
    return whole
