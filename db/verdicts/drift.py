"""Slow drift against a pinned reference: what no comparison of neighbours sees."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from db.metrics.groups import Bools, Floats, Ints
from db.verdicts.change_points import autocorrelation, noise_scale
from db.verdicts.policy import Policy
from db.verdicts.results import Result
from db.verdicts.sentences import drifted
from db.verdicts.vocabulary import Metric, Verdict, higher_is_better


class Drift(Result):
    """How far the newest points stand from the reference. `total` is the whole relative change, `unexplained`
    what remains of it after the announced steps, with its interval and two-sided p.
    """

    total: float
    unexplained: float
    interval: tuple[float, float]
    p_value: float
    verdict: Verdict
    reason: str


def drift_from_reference(
    y: Floats, reference: Bools, steps: Floats, metric: Metric, policy: Policy
) -> Drift | None:
    """Compare the newest `policy.history.drift_points` points with the reference.

    `y`: log values of a series; `reference` flags the points of the pinned build, the oldest ones are taken
    where none is flagged; `steps`: per point the sum of all announced log steps up to it. None where either
    side would have fewer than three points or the sides would overlap.
    """
    size = policy.history.drift_points
    pinned = np.flatnonzero(reference)[:size] if reference.any() else np.arange(min(size, len(y)))
    newest = np.arange(max(len(y) - size, 0), len(y))
    if min(len(pinned), len(newest)) < 3 or pinned[-1] >= newest[0]:
        return None
    plain = y - steps
    total = float(np.mean(y[newest]) - np.mean(y[pinned]))
    slow = float(np.mean(plain[newest]) - np.mean(plain[pinned]))
    error = _error(plain, pinned, newest, policy)
    p_value = 2.0 * float(stats.norm.sf(abs(slow) / error))
    half = float(stats.norm.ppf(0.5 + policy.confidence / 2.0)) * error
    real = p_value <= policy.history.p_value and abs(slow) >= math.log1p(policy.history.minimum_effect)
    verdict = Verdict.INCONCLUSIVE
    if real:
        verdict = Verdict.IMPROVED if (slow > 0) == higher_is_better(metric) else Verdict.REGRESSED
    elif abs(slow) + half <= math.log1p(policy.thresholds[metric].unchanged_margin):
        verdict = Verdict.UNCHANGED
    against = "the reference build" if reference.any() else "the oldest points"
    return Drift(
        total=math.expm1(total),
        unexplained=math.expm1(slow),
        interval=(math.expm1(slow - half), math.expm1(slow + half)),
        p_value=p_value,
        verdict=verdict,
        reason=drifted(metric, math.expm1(slow), against, real=real),
    )


def _error(plain: Floats, pinned: Ints, newest: Ints, policy: Policy) -> float:
    """Standard error of the difference of both means; neighbours that resemble each other count for less."""
    scale = max(noise_scale(plain), policy.noise_floor)
    before, after = plain[pinned], plain[newest]
    rho = autocorrelation(before, after, policy.history.autocorrelation_limit)
    widening = math.sqrt((1.0 + rho) / (1.0 - rho))
    return scale * widening * math.sqrt(1.0 / len(before) + 1.0 / len(after))
