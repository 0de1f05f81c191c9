"""Cases with two modes, judged by ranks: a mean over two modes says how often each came, not what changed.

With ten trials a side of one code, five in each of two modes 30 % apart, a t-test needs hundreds of trials to
see 5 %. Most pairs of a head and a base trial in the same mode differ by the change itself: the median of all
pairwise differences (Hodges & Lehmann 1963, Ann. Math. Statist. 34, 598-611) finds it, and Mann and Whitney's
test (1947, Ann. Math. Statist. 18, 50-60) judges it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from compilewatch.db.judge.modes import TwoModes, two_modes_of_each
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.statistics.contrast import Contrasts, Observations
from compilewatch.db.metrics.groups import Floats


@dataclass(frozen=True)
class RankTest:
    """`shift` of the log values, its standard error, and the two-sided p."""

    shift: float
    error: float
    p_value: float


def rank_tests(observed: Observations, contrasts: Contrasts, policy: Policy) -> dict[int, RankTest]:
    """By case number, of those with `policy.rank_trials` a side and two modes."""
    many = np.flatnonzero(contrasts.trials.min(axis=1) >= policy.rank_trials)
    by_length: dict[int, dict[int, tuple[Floats, Floats]]] = {}
    for case in many.tolist():
        mine = observed.where(observed.case == case)
        x = _without_runs(mine) if contrasts.interleaved[case] else mine.x
        base, head = x[mine.side == 0], x[mine.side == 1]
        if min(len(base), len(head)) >= policy.rank_trials:
            by_length.setdefault(len(x), {})[case] = base, head
    tests = {}
    for sides in by_length.values():
        both = np.stack([np.concatenate(each) for each in sides.values()])
        modes = two_modes_of_each(both, policy.history)
        for (case, (base, head)), known in zip(sides.items(), modes, strict=True):
            if known is not None and is_bimodal_in_both(base, head, known):
                tests[case] = rank_test(base, head)
    return tests


def _without_runs(mine: Observations) -> Floats:
    """Values less what their run has in common (aligned ranks, Hodges & Lehmann 1962, Ann. Math. Statist.
    33, 482-497), where there are several runs.
    """
    x = mine.x.copy()
    runs = np.unique(mine.run)
    if len(runs) > 1:
        for run in runs.tolist():
            x[mine.run == run] -= np.median(x[mine.run == run])
    return x


def is_bimodal_in_both(base: Floats, head: Floats, modes: TwoModes) -> bool:
    """Whether one side alone was seen in both `modes` that the sides have together: two sides that are only
    apart have changed.
    """
    middle = (modes.low + modes.high) / 2.0
    rarer = [min(np.sum(side > middle), np.sum(side <= middle)) for side in (base, head)]
    return bool(max(rarer) >= 2)


def rank_test(base: Floats, head: Floats) -> RankTest:
    """Neither side is empty, none of the values NaN."""
    from scipy import stats

    shifts = np.sort((head[:, None] - base[None, :]).ravel())
    n, m = len(base), len(head)
    # Ends of the 95 % interval of the shift: the order statistics that Mann-Whitney's U allows (Lehmann 1975,
    # Nonparametrics, section 2.5).
    off = 1.96 * math.sqrt(n * m * (n + m + 1) / 12.0)
    low = max(math.floor(n * m / 2.0 - off), 0)
    half = float(shifts[n * m - 1 - low] - shifts[low]) / 2.0
    p_value = float(stats.mannwhitneyu(head, base, alternative="two-sided").pvalue)
    return RankTest(float(np.median(shifts)), half / 1.96, p_value)


def with_run_noise(test: RankTest, variance: float) -> RankTest:
    """The same where whole runs differ by this variance, which ranks within a comparison do not see."""
    if variance == 0.0:
        return test
    error = math.sqrt(test.error**2 + variance)
    p_value = 2.0 * float(scipy.special.ndtr(-abs(test.shift) / error))
    return RankTest(test.shift, error, max(test.p_value, p_value))
