"""What makes one metric of a case regressed, improved, the same or undecided: every rule, from the top.

`db.judge.compare.rows` sets aside what the machine explains of it, and `Row.moved` of `db.judge.results`
calls slower or faster what is left. How evidence comes of trials is statistics
(`db.judge.statistics.evidence`, formulas in `db.judge.significance`). The steps of one series through time
have rules of their own (`db.judge.change_points`). Constants, each with its source, are in
`db.judge.policy`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.significance import (
    TTest,
    equivalence_p,
    false_discovery_q,
    power_quantile,
    trials_needed,
)
from compilewatch.db.metrics.groups import Bools, Floats, Ints
from compilewatch.db.records.vocabulary import Verdict


@dataclass(frozen=True)
class Evidence:
    """What the trials of one metric (or of one part of it) show of every case; no verdict yet.

    `test` is that of log(head / base), `within` the same by the trials alone, as if runs did not differ.
    `trials` and `level`, the mean log value, are of both sides, shape (cases, 2). `run_scale` times
    `run_variance`, the variance between runs with `run_df`, is part of the test's; 0 where the sides were
    `interleaved`. `cv` is the noise of one trial, NaN where nobody knows it; `scatter` the variance of one
    trial that a case's class is known for. `past_runs` counts the runs of the case's past, `past_error` is
    the standard error of the difference by that past alone, NaN without one.

    `rate` is the false discovery rate that a case is held to. `ranked` flags the cases that ranks
    decide, `identical` those with several trials a side, all of them with one value. `apart` is how far the
    nearest trials of the two sides are apart, as a log change the way of the difference, negative where sides
    overlap; `spread` how far the trials of one side are apart at most in any case of the class.
    """

    test: TTest
    within: TTest
    trials: Ints
    level: Floats
    interleaved: Bools
    run_scale: Floats
    run_variance: Floats
    run_df: Floats
    cv: Floats
    scatter: Floats
    past_runs: Ints
    past_error: Floats
    rate: Floats
    ranked: Bools
    identical: Bools
    apart: Floats
    spread: Floats

    @property
    def fewest_trials(self) -> Ints:
        """Trials on the smaller side, per case."""
        smaller: Ints = self.trials.min(axis=1)
        return smaller


@dataclass(frozen=True)
class Decision:
    """One metric decided, case by case: `regressed`, `improved` and `same` exclude each other, and where none
    is set a case is undecided.

    `q_value` is the p adjusted for the number of cases. `held_back` are changes that too few trials of a
    noisy class show, `by_runs` those that trials show and the noise between runs may have made. `more_trials`
    are those a side that would decide it, 0 where decided or unknown; `unseen` those that a change of
    `policy.advice_effect` would take where these are too many, else 0. `visible` is the log change that would
    have been announced had it alone changed. `minimum_effect` and `margin` are what it was decided by.
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
    minimum_effect: Floats
    margin: Floats

    @property
    def changed(self) -> Bools:
        """Either way."""
        return self.regressed | self.improved

    @property
    def verdicts(self) -> list[Verdict]:
        """Per case."""
        flags = (each.tolist() for each in (self.regressed, self.improved, self.same))
        return [
            Verdict.REGRESSED
            if regressed
            else Verdict.IMPROVED
            if improved
            else Verdict.UNCHANGED
            if same
            else Verdict.INCONCLUSIVE
            for regressed, improved, same in zip(*flags, strict=True)
        ]


def decide(
    evidence: Evidence,
    policy: Policy,
    *,
    minimum_effect: Floats,
    margin: Floats,
    families: int,
    counted: Bools | None = None,
    planned: bool = True,
    floor_cv: Callable[[], Floats] | None = None,
    higher_is_better: bool = False,
) -> Decision:
    """One metric of every case, decided by its trials.

    `minimum_effect` and `margin` are relative changes per case; `families` the number of metrics judged in
    this comparison; `counted` flags the cases that take part (the canary does not), None for all; `planned`
    says whether more trials than the smallest number are advised for this metric; `floor_cv` gives the noise
    per case that the machine is known for, by which advice is given where a case has none of its own;
    `higher_is_better` says which way the metric regresses.
    """
    test = evidence.test
    # There is a verdict only from the smallest number of trials a side on.
    enough = enough_trials(evidence, policy)
    if counted is not None:
        enough &= counted
    # The p of a case is adjusted for how many were tested (Benjamini & Hochberg 1995, J. R. Statist. Soc. B
    # 57, 289-300), and held to the rate for so many trials.
    q_value = false_discovery_q(np.where(enough, test.p_value, np.nan))
    # Nothing is announced for a metric whose smallest adjusted p (Simes' global test, 1986, Biometrika 73,
    # 751-754) stays above the level shared out over the metrics: so a comparison of identical builds raises
    # anything at all at most as often as the level says, however many metrics it has.
    something = np.nanmin(q_value / evidence.rate, initial=np.inf) <= 1.0 / families
    size = np.abs(np.nan_to_num(test.difference))
    large = size >= np.log1p(minimum_effect)
    significant = enough & something & large & (q_value <= evidence.rate)
    # What few trials of a noisy class show has to be obvious besides.
    obvious = _obvious(evidence, size, policy)
    real = significant & (size >= obvious)
    # The same is what two one-sided tests show to lie within the margin (Schuirmann 1987, J. Pharmacokinet.
    # Biopharm. 15, 657-680), or what has but one value on both sides.
    identical = evidence.identical & (counted if counted is not None else True)
    same = (enough & ~large & (equivalence_p(test, margin) <= policy.equivalence_level)) | identical
    more, unseen = _more_trials(evidence, policy, floor_cv, planned=planned)
    decided = real | same
    told_alone = evidence.rate / (families * max(1, int(np.count_nonzero(enough))))
    visible = np.maximum(_visible(test, told_alone, minimum_effect), obvious)
    slowdown = -test.difference if higher_is_better else test.difference
    return Decision(
        q_value=q_value,
        regressed=real & (slowdown > 0),
        improved=real & (slowdown < 0),
        same=same,
        enough_trials=enough,
        suspected=(_suspected(evidence, size, enough, policy) | (significant & ~real)) & ~identical,
        more_trials=np.where(decided, 0, more),
        unseen=np.where(decided, 0, unseen),
        held_back=significant & ~real & ~same,
        by_runs=_by_runs(evidence, enough & large) & ~significant & ~same,
        # What was not told is not visible, by whichever of the rules.
        visible=np.where(enough & large & ~real, np.maximum(visible, size), visible),
        minimum_effect=minimum_effect,
        margin=margin,
    )


def enough_trials(evidence: Evidence, policy: Policy) -> Bools:
    """One trial a side is never enough, whatever the history says."""
    enough: Bools = evidence.fewest_trials >= _smallest(evidence, policy)
    return enough & np.isfinite(evidence.test.p_value)


def _smallest(evidence: Evidence, policy: Policy) -> Ints:
    """Trials a side below which there is no verdict, per case: fewer where its past is long."""
    long_past = evidence.past_runs >= policy.long_history_runs
    return np.where(long_past, policy.minimum_trials_with_history, policy.minimum_trials)


def _obvious(evidence: Evidence, size: Floats, policy: Policy) -> Floats:
    """The log change from which few trials of a noisy class show what nobody need confirm; 0 for other cases.

    `policy.obvious_size` deviations of a trial of the class; or less where every trial of one side is beyond
    every one of the other by `policy.obvious_factor`, and the change is as large as what any two trials of
    one side of the class differ by. `size`, the log change of each case, and `Evidence.apart` grow alike with
    a change, so the bound is that of the trials, whatever they changed by.

    Of n trials a side of one code the sides lie apart in 2 of C(2n, n) cases, whatever the noise: 1 of 10
    with three (Wilcoxon 1945, Biometrics Bulletin 1, 80-83; so counts Tukey's quick test, 1959, Technometrics
    1, 31-48). That alone decides nothing: the change is significant besides. Together they raise something in
    at most .05 of the comparisons of identical builds, with 1, 3, 15 and 30 % between processes, heavy tails
    and two modes (`tests/db/judge/test_obvious.py`; docs/measured/verdicts.md).
    """
    scatter = np.nan_to_num(evidence.scatter)
    held = (scatter > policy.noisy_class_cv**2) & (evidence.fewest_trials < policy.few_trials)
    clear = np.fmax(evidence.spread, size - evidence.apart + np.log(policy.obvious_factor))
    return np.where(held, np.fmin(policy.obvious_size * np.sqrt(scatter), clear), 0.0)


def _suspected(evidence: Evidence, size: Floats, enough: Bools, policy: Policy) -> Bools:
    """Worth measuring again: by the test where there are trials enough, else by the series' own past."""
    confirm = policy.confirm
    by_test = enough & (evidence.test.p_value <= confirm.suspect_p_value)
    by_test &= size >= np.log1p(confirm.suspect_effect)
    with np.errstate(invalid="ignore", divide="ignore"):
        by_past = size / evidence.past_error > policy.suspect_z
    suspected: Bools = by_test | (~enough & by_past)
    return suspected


def _by_runs(evidence: Evidence, tried: Bools) -> Bools:
    """Of those tried the ones from separate runs whose own trials show a change."""
    q_value = false_discovery_q(np.where(tried, evidence.within.p_value, np.nan))
    shown: Bools = tried & (evidence.run_scale > 0) & (q_value <= evidence.rate)
    return shown


def _visible(test: TTest, p_value: Floats, minimum_effect: Floats) -> Floats:
    """The log change of this p, no less than the smallest that counts; NaN where nothing can be tested."""
    known = test.df > 0
    quantile = special.stdtrit(np.where(known, test.df, 1.0), 1.0 - p_value / 2.0)
    visible: Floats = np.maximum(quantile * test.standard_error, np.log1p(minimum_effect))
    return np.where(known, visible, np.nan)


def _more_trials(
    evidence: Evidence, policy: Policy, floor_cv: Callable[[], Floats] | None, *, planned: bool
) -> tuple[Ints, Ints]:
    """Trials a side still wanted, and those that a clock would need which cannot see the change planned for.

    First the smallest number that is ever judged; then, where trials are `planned`, those that show a change
    of `policy.advice_effect`, whatever change was seen: a plan for the change seen chases noise.
    """
    fewest, cv = evidence.fewest_trials, evidence.cv
    compared = np.isfinite(evidence.test.difference)
    if floor_cv is not None and (compared & ~np.isfinite(cv)).any():
        cv = np.where(np.isfinite(cv), cv, floor_cv())
    known = np.isfinite(cv) & compared
    power = power_quantile(policy.advice_power)
    needed = trials_needed(np.where(known, cv, 0.0), np.log1p(policy.advice_effect), power)
    needed = np.maximum(needed, policy.few_trials)
    smallest = _smallest(evidence, policy)
    below = known & (fewest < smallest)
    plan = known & ~below & planned
    hopeless = plan & (needed > policy.advice_trials)
    later = np.where(plan & ~hopeless, np.maximum(needed - fewest, 0), 0)
    return np.where(below, smallest - fewest, later), np.where(hopeless, needed, 0)
