"""What the trials of one metric show of every case, by which `db.judge.decide` decides.

Cases with two modes, judged by ranks: a mean over two modes says how often each came, not what changed.

With ten trials a side of one code, five in each of two modes 30 % apart, a t-test needs hundreds of trials to
see 5 %. Most pairs of a head and a base trial in the same mode differ by the change itself: the median of all
pairwise differences (Hodges & Lehmann 1963, Ann. Math. Statist. 34, 598-611) finds it, and Mann and Whitney's
test (1947, Ann. Math. Statist. 18, 50-60) judges it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy

from compilewatch.db.judge.decide import Evidence
from compilewatch.db.judge.modes import TwoModes, two_modes_of_each
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.significance import (
    Moderated,
    Prior,
    TTest,
    moderate,
    pool,
    t_test,
)
from compilewatch.db.judge.statistics.contrast import Contrasts, Observations, contrast
from compilewatch.db.judge.statistics.looks import share_of_level
from compilewatch.db.judge.statistics.noise import (
    FEWEST_NEIGHBOURS,
    Neighbours,
    Past,
    RunNoise,
    Shown,
    repeated_runs,
    run_noise,
    series_noise,
    together,
    with_neighbours,
)
from compilewatch.db.judge.statistics.noise_floor import ONE_CLASS
from compilewatch.db.metrics.groups import Bools, Floats, Ints


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


def examine_cases(
    observed: Observations,
    past: Past,
    cases: int,
    policy: Policy,
    classes: Ints | None = None,
    *,
    canary: Bools | None = None,
    shown: Callable[[int], Shown] = lambda _class: Shown(),
    until_decided: bool = False,
) -> Evidence:
    """Contrast, moderated variance (own, history, prior) and test of every case of one metric.

    `canary` flags the cases that measure the machine, None for none; `shown` says what is known of the noise
    between runs in a class. With `until_decided` the trials were judged over and over as they came.

    `classes` numbers the class of each case (`db.judge.statistics.noise_floor`): each has its own pairing,
    prior and
    noise of runs. None: all are of one class.
    """
    numbers = np.unique(np.zeros(1, dtype=np.int64) if classes is None else classes)
    counted = np.ones(cases, dtype=np.bool_) if canary is None else ~canary
    if classes is None or len(numbers) < 2:
        number = int(numbers[0]) if len(numbers) else ONE_CLASS
        of_gpu = number != ONE_CLASS
        evidence = _examine_class(observed, past, counted, policy, shown(number), of_gpu=of_gpu)
        return _shared_over_looks(evidence) if until_decided else evidence
    by_class = {
        number: _examine_class(
            observed.where(classes[observed.case] == number),
            past.where(classes[past.series] == number),
            counted,
            policy,
            shown(number),
            of_gpu=number != ONE_CLASS,
        )
        for number in numbers.tolist()
    }
    evidence = _merged(classes, by_class)
    return _shared_over_looks(evidence) if until_decided else evidence


def _shared_over_looks(evidence: Evidence) -> Evidence:
    # Those of the base may be of another run, and stay as they are.
    share = share_of_level(evidence.trials[:, 1])
    return replace(evidence, share=share, rate=evidence.rate * share)


def _examine_class(
    observed: Observations, past: Past, counted: Bools, policy: Policy, shown: Shown, *, of_gpu: bool
) -> Evidence:
    cases = len(counted)
    contrasts = contrast(observed, cases, policy)
    history = series_noise(past, cases, policy)
    # A trial's own spread, which the history knows, says nothing of the difference between two neighbours.
    variances = np.where(contrasts.paired, np.nan, history.variance)
    variance, df = pool(contrasts.variance, contrasts.df, variances, history.df)
    moderated = moderate(
        variance,
        df,
        df_limit=policy.prior_df_limit,
        floor=policy.noise_floor**2,
        outlier_level=policy.outlier_level,
    )
    if of_gpu and moderated.prior.df > 0:
        # A few trials of one mode look calm: what a class is known to scatter by, its cases do.
        few = contrasts.trials.min(axis=1) < policy.rank_trials
        least = np.where(few & (moderated.df > 0), moderated.prior.variance, 0.0)
        moderated = replace(moderated, variance=np.fmax(moderated.variance, least))
    again = past.beside(observed.where(contrasts.run_scale[observed.case] > 0))
    neighbours = Neighbours.of(contrasts, contrasts.scale * moderated.variance, counted)
    runs = _run_noise(
        neighbours, repeated_runs(again, (contrasts.variance, contrasts.df), policy), shown, policy
    )
    test = t_test(
        contrasts.difference,
        contrasts.scale,
        moderated,
        extra_variance=contrasts.run_scale * runs.variance,
        extra_df=runs.df,
    )
    within = t_test(
        contrasts.difference,
        contrasts.scale,
        moderated,
        extra_variance=contrasts.run_scale * policy.between_run_floor**2,
    )
    test = _beside_others(test, neighbours, moderated, policy)
    between = contrasts.run_scale * runs.variance
    ranked = np.zeros(cases, dtype=np.bool_)
    for case, by_rank in rank_tests(observed, contrasts, policy).items():
        noisy = with_run_noise(by_rank, float(between[case]))
        ranked[case] = True
        half = np.array([-noisy.shift / 2.0, noisy.shift / 2.0])
        contrasts.level[case] = contrasts.level[case].mean() + half
        for column, value in (
            (test.difference, noisy.shift),
            (test.standard_error, noisy.error),
            (test.df, contrasts.trials[case].sum() - 2.0),
            (test.p_value, noisy.p_value),
        ):
            column[case] = value
    scatter = np.full(cases, _scatter(moderated.prior, of_gpu=of_gpu))
    low, high = _ends(observed, cases)
    widest = float(np.max((high - low)[counted], initial=0.0))
    run_variance, run_df = (np.full(cases, each) for each in (runs.variance, runs.df))
    return Evidence(
        test=test,
        within=within,
        trials=contrasts.trials,
        level=contrasts.level,
        interleaved=contrasts.interleaved,
        run_scale=contrasts.run_scale,
        run_variance=run_variance,
        run_df=run_df,
        cv=np.sqrt(moderated.variance),
        scatter=scatter,
        past_runs=history.runs,
        past_error=np.sqrt(contrasts.scale * history.variance + contrasts.run_scale * run_variance),
        rate=_rates(contrasts, policy, of_gpu=of_gpu),
        ranked=ranked,
        identical=(low.min(axis=1) == high.max(axis=1)) & (contrasts.trials.min(axis=1) >= 2),
        apart=np.where(test.difference > 0, low[:, 1] - high[:, 0], low[:, 0] - high[:, 1]),
        spread=np.full(cases, widest),
        share=np.ones(cases),
    )


def _run_noise(neighbours: Neighbours, repeated: RunNoise, shown: Shown, policy: Policy) -> RunNoise:
    """Between the runs of the sides, by all that is known of it."""
    if not np.any(neighbours.run_scale > 0):
        return RunNoise(policy.between_run_floor**2, np.inf)
    is_known = repeated.df or len(shown.canaries) or np.count_nonzero(neighbours.used) >= FEWEST_NEIGHBOURS
    runs = run_noise(repeated, shown, policy, alone=not is_known)
    return runs if shown.share == 0.0 else with_neighbours(runs, neighbours, policy)


def _beside_others(test: TTest, neighbours: Neighbours, moderated: Moderated, policy: Policy) -> TTest:
    """`test`, or where it is surer that of what sets a case apart from the others of its runs.

    What all cases share may be the machine's: a case is only tested for what it has beyond, and its interval
    is wider by that.
    """
    shared, used = together(neighbours, policy), neighbours.used
    if not shared.df:
        return test
    sign = np.sign(test.difference)
    apart = sign * np.maximum(np.abs(test.difference) - np.maximum(sign * shared.change, 0.0), 0.0)
    scale = neighbours.within / moderated.variance
    others = t_test(apart, scale, moderated, extra_variance=shared.variance, extra_df=shared.df)
    error = np.hypot(others.standard_error, shared.change)
    surer = used & (error < test.standard_error)
    return replace(
        test,
        standard_error=np.where(surer, error, test.standard_error),
        df=np.where(surer, others.df, test.df),
        p_value=np.where(used, np.fmin(test.p_value, others.p_value), test.p_value),
    )


def _ends(observed: Observations, cases: int) -> tuple[Floats, Floats]:
    """The smallest and the largest log value of each side, shape (cases, 2); infinite of a side without."""
    low, high = np.full((cases, 2), np.inf), np.full((cases, 2), -np.inf)
    np.minimum.at(low, (observed.case, observed.side), observed.x)
    np.maximum.at(high, (observed.case, observed.side), observed.x)
    return low, high


def _rates(contrasts: Contrasts, policy: Policy, *, of_gpu: bool) -> Floats:
    fewest = contrasts.trials.min(axis=1)
    few = policy.rank_trials if of_gpu else policy.few_trials
    rates = np.where(fewest < few, policy.few_trials_rate, policy.false_discovery_rate)
    return np.where(fewest == policy.few_trials, policy.gpu_few_trials_rate, rates) if of_gpu else rates


def _scatter(prior: Prior, *, of_gpu: bool) -> float:
    """The variance that the cases of a class have in common; on a GPU, where one case may be twenty times as
    noisy as its neighbour, the one that only a twentieth of them exceeds.
    """
    if prior.df <= 0:
        return np.nan
    return prior.variance * (prior.df / float(scipy.special.chdtri(prior.df, 0.95)) if of_gpu else 1.0)


def _merged(classes: Ints, by_class: dict[int, Evidence]) -> Evidence:
    """Of every case what was found in its own class."""

    def merged(several: list[Any]) -> Any:
        first = several[0]
        if isinstance(first, np.ndarray):
            whole = first.copy()
            for number, each in zip(by_class, several, strict=True):
                whole[classes == number] = each[classes == number]
            return whole
        names = [field.name for field in fields(first)]
        return replace(first, **{name: merged([getattr(each, name) for each in several]) for name in names})

    whole: Evidence = merged(list(by_class.values()))
    return whole
