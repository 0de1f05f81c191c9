"""One metric over all its cases: from log values to which regressed, improved or stayed.

`db.judge.compare.rows` sets aside what the machine explains of them, and `Row.moved` of `db.judge.results`
calls slower or faster what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy import special

from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.statistics.case_classes import ONE_CLASS
from compilewatch.db.judge.statistics.contrast import Contrasts, Observations, contrast
from compilewatch.db.judge.statistics.noise import (
    FEWEST_NEIGHBOURS,
    Neighbours,
    Past,
    RunNoise,
    SeriesNoise,
    Shown,
    repeated_runs,
    run_noise,
    series_noise,
    together,
    with_neighbours,
)
from compilewatch.db.judge.statistics.ranks import rank_tests, with_run_noise
from compilewatch.db.judge.statistics.significance import (
    Moderated,
    Prior,
    TTest,
    equivalence_p,
    false_discovery_q,
    moderate,
    pool,
    power_quantile,
    t_test,
    trials_needed,
)
from compilewatch.db.metrics.groups import Bools, Floats, Ints


@dataclass(frozen=True)
class Tested:
    """Every case of one metric (or of one part of it), tested but not yet judged.

    `scatter` is the variance of one trial that a case's class is known for, NaN where nothing is known.
    `rate` is the false discovery rate that a case is held to. `ranked` flags the cases that ranks
    decide, `identical` those with several trials a side, all of them with one value. `within` is the test
    of each case by its trials alone, as if runs did not differ. `apart` is how far the nearest trials of the
    two sides are apart, as a log change the way of `difference`, negative where sides overlap; `spread` how
    far the trials of one side are apart at most in any case of the class.
    """

    contrasts: Contrasts
    moderated: Moderated
    past: SeriesNoise
    runs: RunNoise
    test: TTest
    scatter: Floats
    rate: Floats
    ranked: Bools
    identical: Bools
    within: TTest
    apart: Floats
    spread: Floats

    @property
    def fewest_trials(self) -> Ints:
        """Trials on the smaller side, per case."""
        smaller: Ints = self.contrasts.trials.min(axis=1)
        return smaller


@dataclass(frozen=True)
class MetricDecisions:
    """Per case: verdict flags (`regressed`, `improved` and `same` exclude each other), FDR-adjusted p,
    suspicion, and trials a side that would decide it (0 where decided or unknown). `unseen` are the trials a
    side that a change of `policy.advice_effect` would take where those are too many, else 0. `held_back` are
    changes that too few trials of a noisy class show, `by_runs` those that trials show and the noise between
    runs may have made; `visible` is the log change that would have been announced had it alone changed.
    """

    q_value: Floats
    regressed: Bools
    improved: Bools
    same: Bools
    enough_trials: Bools
    suspected: Bools
    more_trials: Ints
    unseen: Ints
    held_back: Bools
    by_runs: Bools
    visible: Floats

    @property
    def changed(self) -> Bools:
        """Either way."""
        return self.regressed | self.improved


def examine_cases(
    observed: Observations,
    past: Past,
    cases: int,
    policy: Policy,
    classes: Ints | None = None,
    *,
    canary: Bools | None = None,
    shown: Callable[[int], Shown] = lambda _class: Shown(),
) -> Tested:
    """Contrast, moderated variance (own, history, prior) and test of every case of one metric.

    `canary` flags the cases that measure the machine, None for none; `shown` says what is known of the noise
    between runs in a class.

    `classes` numbers the class of each case (`db.judge.statistics.case_classes`): each has its own pairing,
    prior and
    noise of runs. None: all are of one class.
    """
    numbers = np.unique(np.zeros(1, dtype=np.int64) if classes is None else classes)
    counted = np.ones(cases, dtype=np.bool_) if canary is None else ~canary
    if classes is None or len(numbers) < 2:
        number = int(numbers[0]) if len(numbers) else ONE_CLASS
        of_gpu = number != ONE_CLASS
        return _examine_class(observed, past, counted, policy, shown(number), of_gpu=of_gpu)
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
    return _merged(classes, by_class)


def _examine_class(
    observed: Observations, past: Past, counted: Bools, policy: Policy, shown: Shown, *, of_gpu: bool
) -> Tested:
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
    spread = (np.full(cases, each) for each in (runs.variance, runs.df))
    return Tested(
        contrasts,
        moderated,
        history,
        RunNoise(*spread),
        test,
        scatter,
        _rates(contrasts, policy, of_gpu=of_gpu),
        ranked,
        (low.min(axis=1) == high.max(axis=1)) & (contrasts.trials.min(axis=1) >= 2),
        within,
        np.where(test.difference > 0, low[:, 1] - high[:, 0], low[:, 0] - high[:, 1]),
        np.full(cases, widest),
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
    return prior.variance * (prior.df / float(special.chdtri(prior.df, 0.95)) if of_gpu else 1.0)


def _merged(classes: Ints, by_class: dict[int, Tested]) -> Tested:
    """Of every case what was found in its own class."""

    def merged(several: list[Any]) -> Any:
        first = several[0]
        if isinstance(first, np.ndarray):
            whole = first.copy()
            for number, each in zip(by_class, several, strict=True):
                whole[classes == number] = each[classes == number]
            return whole
        changed = {
            field.name: merged([getattr(each, field.name) for each in several])
            for field in fields(first)
            if field.name != "prior"
        }
        return replace(first, **changed)

    whole: Tested = merged(list(by_class.values()))
    return whole


def judge_cases(
    tested: Tested,
    policy: Policy,
    *,
    minimum_effect: Floats,
    margin: Floats,
    families: int,
    counted: Bools | None = None,
    planned: bool = True,
    floor_cv: Callable[[], Floats] | None = None,
    higher_is_better: bool = False,
) -> MetricDecisions:
    """Verdict flags of every case.

    `minimum_effect` and `margin` are relative changes per case; `families` the number of metrics judged in
    this comparison; `counted` flags the cases that take part (the canary does not), None for all; `planned`
    says whether more trials than the smallest number are advised for this metric; `floor_cv` gives the noise
    per case that the machine is known for, by which advice is given where a case has none of its own;
    `higher_is_better` says which way the metric regresses.

    Nothing is announced for a metric whose smallest adjusted p (Simes' global test, 1986, Biometrika 73,
    751-754) stays above the level shared out over the metrics: so a comparison of identical builds raises
    anything at all at most as often as the level says, however many metrics it has.

    Where a class of cases is noisy, what few trials a side show is suspected, unless it is obvious
    (`_obvious`).
    """
    test = tested.test
    enough = enough_trials(tested, policy)
    if counted is not None:
        enough &= counted
    q_value = false_discovery_q(np.where(enough, test.p_value, np.nan))
    something = np.nanmin(q_value / tested.rate, initial=np.inf) <= 1.0 / families
    size = np.abs(np.nan_to_num(test.difference))
    large = size >= np.log1p(minimum_effect)
    significant = enough & something & large & (q_value <= tested.rate)
    real = significant & (size >= _obvious(tested, size, policy))
    identical = tested.identical & (counted if counted is not None else True)
    same = (enough & ~large & (equivalence_p(test, margin) <= policy.equivalence_level)) | identical
    more, unseen = _more_trials(tested, policy, floor_cv, planned=planned)
    decided = real | same
    told_alone = tested.rate / (families * max(1, int(np.count_nonzero(enough))))
    visible = np.maximum(_visible(test, told_alone, minimum_effect), _obvious(tested, size, policy))
    slowdown = -test.difference if higher_is_better else test.difference
    return MetricDecisions(
        q_value=q_value,
        regressed=real & (slowdown > 0),
        improved=real & (slowdown < 0),
        same=same,
        enough_trials=enough,
        suspected=(_suspected(tested, size, enough, policy) | (significant & ~real)) & ~identical,
        more_trials=np.where(decided, 0, more),
        unseen=np.where(decided, 0, unseen),
        held_back=significant & ~real & ~same,
        by_runs=_by_runs(tested, enough & large) & ~significant & ~same,
        # What was not told is not visible, by whichever of the rules.
        visible=np.where(enough & large & ~real, np.maximum(visible, size), visible),
    )


def _obvious(tested: Tested, size: Floats, policy: Policy) -> Floats:
    """The log change from which few trials of a noisy class show what nobody need confirm; 0 for other cases.

    `policy.obvious_size` deviations of a trial of the class; or less where every trial of one side is beyond
    every one of the other by `policy.obvious_factor`, and the change is as large as what any two trials of
    one side of the class differ by. `size`, the log change of each case, and `Tested.apart` grow alike with
    a change, so the bound is that of the trials, whatever they changed by.

    Of n trials a side of one code the sides lie apart in 2 of C(2n, n) cases, whatever the noise: 1 of 10
    with three (Wilcoxon 1945, Biometrics Bulletin 1, 80-83; so counts Tukey's quick test, 1959, Technometrics
    1, 31-48). That alone decides nothing: the change is significant besides. Together they raise something in
    at most .05 of the comparisons of identical builds, with 1, 3, 15 and 30 % between processes, heavy tails
    and two modes (`tests/db/judge/statistics/test_obvious.py`; docs/measured/verdicts.md).
    """
    scatter = np.nan_to_num(tested.scatter)
    held = (scatter > policy.noisy_class_cv**2) & (tested.fewest_trials < policy.few_trials)
    clear = np.fmax(tested.spread, size - tested.apart + np.log(policy.obvious_factor))
    return np.where(held, np.fmin(policy.obvious_size * np.sqrt(scatter), clear), 0.0)


def _visible(test: TTest, p_value: Floats, minimum_effect: Floats) -> Floats:
    """The log change of this p, no less than the smallest that counts; NaN where nothing can be tested."""
    known = test.df > 0
    quantile = special.stdtrit(np.where(known, test.df, 1.0), 1.0 - p_value / 2.0)
    visible: Floats = np.maximum(quantile * test.standard_error, np.log1p(minimum_effect))
    return np.where(known, visible, np.nan)


def _by_runs(tested: Tested, tried: Bools) -> Bools:
    """Of those tried the ones from separate runs whose own trials show a change."""
    q_value = false_discovery_q(np.where(tried, tested.within.p_value, np.nan))
    shown: Bools = tried & (tested.contrasts.run_scale > 0) & (q_value <= tested.rate)
    return shown


def enough_trials(tested: Tested, policy: Policy) -> Bools:
    """One trial a side is never enough, whatever the history says."""
    enough: Bools = (tested.fewest_trials >= _smallest(tested, policy)) & np.isfinite(tested.test.p_value)
    return enough


def _smallest(tested: Tested, policy: Policy) -> Ints:
    """Trials a side below which there is no verdict, per case."""
    long_past = tested.past.runs >= policy.long_history_runs
    return np.where(long_past, policy.minimum_trials_with_history, policy.minimum_trials)


def _suspected(tested: Tested, size: Floats, enough: Bools, policy: Policy) -> Bools:
    """Worth measuring again: by the test where there are trials enough, else by the series' own past."""
    confirm = policy.confirm
    by_test = enough & (tested.test.p_value <= confirm.suspect_p_value)
    by_test &= size >= np.log1p(confirm.suspect_effect)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = tested.contrasts.scale * tested.past.variance
        expected = expected + tested.contrasts.run_scale * tested.runs.variance
        by_past = size / np.sqrt(expected) > policy.suspect_z
    suspected: Bools = by_test | (~enough & by_past)
    return suspected


def _more_trials(
    tested: Tested, policy: Policy, floor_cv: Callable[[], Floats] | None, *, planned: bool
) -> tuple[Ints, Ints]:
    """Trials a side still wanted, and those that a clock would need which cannot see the change planned for.

    First the smallest number that is ever judged; then, where trials are `planned`, those that show a change
    of `policy.advice_effect`, whatever change was seen: a plan for the change seen chases noise.
    """
    fewest = tested.fewest_trials
    cv = np.sqrt(tested.moderated.variance)
    compared = np.isfinite(tested.contrasts.difference)
    if floor_cv is not None and (compared & ~np.isfinite(cv)).any():
        cv = np.where(np.isfinite(cv), cv, floor_cv())
    known = np.isfinite(cv) & compared
    power = power_quantile(policy.advice_power)
    needed = trials_needed(np.where(known, cv, 0.0), np.log1p(policy.advice_effect), power)
    needed = np.maximum(needed, policy.few_trials)
    smallest = _smallest(tested, policy)
    below = known & (fewest < smallest)
    plan = known & ~below & planned
    hopeless = plan & (needed > policy.advice_trials)
    later = np.where(plan & ~hopeless, np.maximum(needed - fewest, 0), 0)
    return np.where(below, smallest - fewest, later), np.where(hopeless, needed, 0)
