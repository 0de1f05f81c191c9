"""One metric over all its cases: from log values to a verdict per case."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from db.metrics.groups import Bools, Floats, Ints
from db.verdicts.contrast import Contrasts, Observations, contrast
from db.verdicts.moderated_t import Moderated, TTest, moderate, pool, t_test
from db.verdicts.noise import Past, RunNoise, SeriesNoise, run_noise, series_noise
from db.verdicts.policy import Policy
from db.verdicts.significance import equivalence_p, false_discovery_q, trials_needed


@dataclass(frozen=True)
class Tested:
    """Every case of one metric (or of one part of it), tested but not yet judged."""

    contrasts: Contrasts
    moderated: Moderated
    past: SeriesNoise
    runs: RunNoise
    test: TTest

    @property
    def fewest_trials(self) -> Ints:
        """Trials on the smaller side, per case."""
        smaller: Ints = self.contrasts.trials.min(axis=1)
        return smaller


@dataclass(frozen=True)
class Judged:
    """Per case: verdict flags (`grew`, `shrank` and `same` exclude each other), FDR-adjusted p, suspicion,
    and trials a side that would decide it (0 where decided or unknown).
    """

    q_value: Floats
    grew: Bools
    shrank: Bools
    same: Bools
    enough_trials: Bools
    suspected: Bools
    more_trials: Ints


def examine_cases(observed: Observations, past: Past, cases: int, policy: Policy) -> Tested:
    """Contrast, moderated variance (own, history, prior) and t-test of every case of one metric."""
    contrasts = contrast(observed, cases, policy)
    history = series_noise(past, cases, policy)
    # A trial's own spread, which the history knows, says nothing of the difference between two neighbours.
    told = np.where(contrasts.paired, np.nan, history.variance)
    variance, df = pool(contrasts.variance, contrasts.df, told, history.df)
    moderated = moderate(
        variance,
        df,
        df_limit=policy.prior_df_limit,
        floor=policy.noise_floor**2,
        outlier_level=policy.outlier_level,
    )
    runs = run_noise(past, (contrasts.variance, contrasts.df), policy)
    test = t_test(
        contrasts.difference,
        contrasts.scale,
        moderated,
        extra_variance=contrasts.run_scale * runs.variance,
        extra_df=runs.df,
    )
    return Tested(contrasts, moderated, history, runs, test)


def judge_cases(
    tested: Tested,
    policy: Policy,
    *,
    minimum_effect: Floats,
    margin: Floats,
    families: int,
    judged: Bools | None = None,
) -> Judged:
    """Verdict flags of every case.

    `minimum_effect` and `margin` are relative changes per case; `families` the number of metrics judged in
    this comparison; `judged` flags the cases that take part (the canary does not), None for all.

    Nothing is announced for a metric whose smallest adjusted p (Simes' global test, 1986, Biometrika 73,
    751-754) stays above the level shared out over the metrics: so a comparison of identical builds raises
    anything at all at most as often as the level says, however many metrics it has.
    """
    test = tested.test
    enough = enough_trials(tested, policy)
    if judged is not None:
        enough &= judged
    q_value = false_discovery_q(np.where(enough, test.p_value, np.nan))
    few = tested.fewest_trials < policy.few_trials
    level = np.where(few, policy.few_trials_rate, policy.false_discovery_rate)
    something = np.nanmin(q_value / level, initial=np.inf) <= 1.0 / families
    size = np.abs(np.nan_to_num(test.difference))
    large = size >= np.log1p(minimum_effect)
    real = enough & something & large & (q_value <= level)
    same = enough & ~large & (equivalence_p(test, margin) <= policy.equivalence_level)
    grew, shrank = real & (test.difference > 0), real & (test.difference < 0)
    return Judged(
        q_value=q_value,
        grew=grew,
        shrank=shrank,
        same=same,
        enough_trials=enough,
        suspected=_suspected(tested, size, enough, policy),
        more_trials=np.where(real | same, 0, _more_trials(tested, size, margin)),
    )


def enough_trials(tested: Tested, policy: Policy) -> Bools:
    """One trial a side is never enough, whatever the history says."""
    long_past = tested.past.runs >= policy.long_history_runs
    needed = np.where(long_past, policy.minimum_trials_with_history, policy.minimum_trials)
    enough: Bools = (tested.fewest_trials >= needed) & np.isfinite(tested.test.p_value)
    return enough


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


def _more_trials(tested: Tested, size: Floats, margin: Floats) -> Ints:
    """Trials a side still needed to tell the change seen, or one as large as the margin, from nothing."""
    cv = np.sqrt(tested.moderated.variance)
    known = np.isfinite(cv) & np.isfinite(tested.contrasts.difference)
    effect = np.maximum(size, np.log1p(margin))
    needed = trials_needed(np.where(known, cv, 0.0), effect)
    more: Ints = np.where(known, np.maximum(needed - tested.fewest_trials, 1), 0)
    return more
