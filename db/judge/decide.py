"""What makes a case regressed, improved, the same, undecided or set aside: every rule, from the top.

A case is regressed in a metric where all of this holds: enough trials a side; a change for the worse that is
significant among all cases; at least the smallest that counts; obvious, if the trials are few and noisy
(`decide`); and the machine does not explain it (`decide_case`). What is counted, such as graph breaks, is
regressed where every trial of the head has more of it than every trial of the base (`decide_count`).

A comparison of two sides is decided in five steps; `db.judge.compare` words what comes out.

1. One metric over all cases, by a test of what its trials show (`decide`). Regressed or improved is what is
   significant, large enough and, where trials are few and noisy, obvious; the same is what is shown to lie
   within a margin. The others are undecided, suspected where it is worth to measure again.
2. What is counted is compared exactly (`decide_count`, `decide_passes`).
3. One metric of one case, beside its other metrics and the canaries (`decide_case`): who moved, and by what
   cause. What the machine explains is set aside: undecided, for it says nothing of the build.
4. What counts (`counts_as`, `group_of`): slower or faster is what the build did to somebody who waits.
5. The comparison as a whole (`overall_verdict`).

One series through time is `db.judge.decide_series`; what is measured again, and what a later row makes of a
recorded one, `db.judge.decide_again`.

How evidence comes of trials is statistics (`db.judge.statistics.evidence`, formulas in
`db.judge.significance`), which cases are compared at all `db.judge.compare.comparable`, where a series
steps `db.judge.change_points`. Constants, each with its source, are in `db.judge.policy`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from compilewatch.db.columns.metrics import REQUESTED_METRICS, higher_is_better
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.significance import (
    TTest,
    equivalence_p,
    false_discovery_q,
    power_quantile,
    trials_needed,
)
from compilewatch.db.judge.who_moved import Clock, Moves, moved_on
from compilewatch.db.metrics.groups import Bools, Floats, Ints
from compilewatch.db.records.vocabulary import Bound, CauseClass, Design, Metric, Verdict, WhoMoved

if TYPE_CHECKING:
    from compilewatch.db.judge.results import Row

MOVED = (Verdict.REGRESSED, Verdict.IMPROVED)

# 1. One metric over all cases: what its trials show.


@dataclass(frozen=True)
class Evidence:
    """What the trials of one metric (or of one part of it) show of every case; no verdict yet.

    `test` is that of log(head / base), `within` the same by the trials alone, as if runs did not differ.
    `trials` and `level`, the mean log value, are of both sides, shape (cases, 2). `run_scale` times
    `run_variance`, the variance between runs with `run_df`, is part of the variance of the test; 0 where the
    sides were `interleaved`. `cv` is the noise of one trial, NaN where nobody knows it; `scatter` the
    variance of one trial that a case's class is known for. `past_runs` counts the runs of the case's past,
    `past_error` is the standard error of the difference by that past alone, NaN without one.

    `rate` is the false discovery rate that a case is held to. `ranked` flags the cases that ranks
    decide, `identical` those with several trials a side, all of them with one value. `apart` is how far the
    nearest trials of the two sides are apart, as a log change the way of the difference, negative where sides
    overlap; `spread` how far the trials of one side are apart at most in any case of the class. `share` is
    the part of every level that a case may spend at its number of trials, which `rate` has already: 1, but
    where trials were added until they decided (`db.judge.statistics.looks`).
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
    share: Floats

    @property
    def fewest_trials(self) -> Ints:
        """Trials on the smaller side, per case."""
        smaller: Ints = self.trials.min(axis=1)
        return smaller


@dataclass(frozen=True)
class Decision:
    """One metric decided, case by case: at most one of `regressed`, `improved` and `same` is set, and where
    none is a case is undecided. `decide` has the source of each rule beside it.

    - `regressed`, `improved`: enough trials, significant (`q_value`, the p adjusted for the number of cases,
      within the rate, and something significant in this metric at all), at least `minimum_effect`, and
      obvious where trials are few and noisy; by the sign of the change and which way the metric is worse.
    - `same`: its interval lies within `margin` and it is smaller than `minimum_effect`; or each trial of both
      sides has the same value.
    - `suspected`: undecided, and to be measured again: a change of `policy.confirm` by its p, or by the past
      of its series where trials are too few; and what is `held_back`.
    - `held_back`: significant, but too few trials of a noisy class show it.
    - `by_runs`: its trials show it, but the noise between separate runs may have made it.

    `more_trials` are those a side that would decide it, 0 where decided or unknown; `unseen` those that a
    change of `policy.advice_effect` would take where these are too many, else 0. `visible` is the log change
    that would have been announced had it alone changed.
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
    more_is_better: bool = False,
) -> Decision:
    """One metric of every case, decided by its trials.

    `minimum_effect` and `margin` are relative changes per case; `families` the number of metrics judged in
    this comparison; `counted` flags the cases that take part (the canary does not), None for all; `planned`
    says whether more trials than the smallest number are advised for this metric; `floor_cv` gives the noise
    per case that the machine is known for, by which advice is given where a case has none of its own;
    `more_is_better` says which way the metric regresses.
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
    within = equivalence_p(test, margin) <= policy.equivalence_level * evidence.share
    same = (enough & ~large & within) | identical
    more, unseen = _more_trials(evidence, policy, floor_cv, planned=planned)
    decided = real | same
    level_alone = evidence.rate / (families * max(1, int(np.count_nonzero(enough))))
    visible = np.maximum(_visible(test, level_alone, minimum_effect), obvious)
    slowdown = -test.difference if more_is_better else test.difference
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
        visible=np.where(large & ~real, np.maximum(visible, size), visible),
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
    a change, so the bound depends on the noise of the trials and not on how large the change is.

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
    quantile = scipy.special.stdtrit(np.where(known, test.df, 1.0), 1.0 - p_value / 2.0)
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


# 2. What is counted: graph breaks, recompiles, and whether a case passes.


def decide_count(base: tuple[float, float], head: tuple[float, float]) -> Verdict:
    """By the smallest and the largest count of each side: regressed where every head trial counts more than
    every base trial. Counts that vary between trials of one build and overlap cannot be told apart.
    """
    if head[0] > base[1]:
        return Verdict.REGRESSED
    if head[1] < base[0]:
        return Verdict.IMPROVED
    return Verdict.UNCHANGED if base == head else Verdict.INCONCLUSIVE


def decide_passes(base: tuple[int, int], head: tuple[int, int]) -> Verdict:
    """By the failed trials and all trials of each side: pass to fail is a regression, fail to pass an
    improvement; failing in some trials only is neither.
    """
    if any(failed not in (0, trials) for failed, trials in (base, head)):
        return Verdict.INCONCLUSIVE
    fails_before, fails_now = base[0] > 0, head[0] > 0
    if fails_before == fails_now:
        return Verdict.UNCHANGED
    return Verdict.REGRESSED if fails_now else Verdict.IMPROVED


def cause_of_count(verdict: Verdict, *, eager_case: bool) -> CauseClass | None:
    """Eager's own code or the compiler, whichever ran; no machine changes a count."""
    return (CauseClass.EAGER if eager_case else CauseClass.COMPILER) if verdict in MOVED else None


# 3. One metric of one case, beside its other metrics and the canaries.

RATIOS = (Metric.SPEEDUP, Metric.DEVICE_SPEEDUP, Metric.BREAK_EVEN)
"""Metrics that eager alone can move."""

TIMES = (
    *(Metric.LATENCY, Metric.SPEEDUP, Metric.COMPILE_COST, Metric.BREAK_EVEN),
    *(Metric.DEVICE_TIME, Metric.ISSUE_TIME, Metric.DEVICE_SPEEDUP),
    *REQUESTED_METRICS,
)
"""What a machine can change."""

ON_DEVICE = (Metric.DEVICE_TIME, Metric.DEVICE_SPEEDUP)
_ON_WALL = (Metric.LATENCY, Metric.SPEEDUP, Metric.BREAK_EVEN)


class Finding(NamedTuple):
    """What the trials of one metric show of one case, as plain values: to take them from arrays one by one
    costs several times as much.

    `difference` is log(head / base); `change`, the ends of `interval`, `visible` and `threshold`, the
    smallest change that these trials could show, are relative and None where the noise is unknown. `reach` is
    the log change that its trials cannot tell from none, even if runs did not differ. `level` is the log
    value of each side. The others are as in `Evidence` and `Decision`; `more_trials` and `unseen` are None
    for 0.
    """

    metric: Metric
    case: int
    verdict: Verdict
    suspected: bool
    enough_trials: bool
    held_back: bool
    by_runs: bool
    identical: bool
    ranked: bool
    design: Design
    difference: float
    change: float | None
    interval: tuple[float, float] | None
    threshold: float | None
    visible: float | None
    reach: float
    margin: float
    p_value: float | None
    q_value: float | None
    level: tuple[float, float]
    trials: tuple[int, int]
    more_trials: int | None
    unseen: int | None

    @property
    def slowdown(self) -> float:
        """The log change, positive for worse."""
        return -self.difference if higher_is_better(self.metric) else self.difference


@dataclass(frozen=True)
class Compared:
    """All that is known of the cases of a comparison, numbered alike everywhere.

    `parts` are the moves of eager and compiled, `device_parts` those of device time. `eager` says which cases
    are eager ones, `bounds` what each waits for, `same_code` whether one's own code is the same on both sides
    (`db.judge.compare.comparable`). `cycles` is the log change of device time in cycles, NaN where the SM
    clock stood still.
    """

    findings: dict[Metric, list[Finding]]
    parts: Moves
    device_parts: Moves
    eager: list[bool]
    bounds: tuple[Bound | None, ...]
    canaries: Canaries
    cycles: list[float]
    same_build: bool
    same_code: list[bool | None]
    policy: Policy

    def clock(self, metric: Metric, case: int) -> Clock:
        """What this metric says as a clock."""
        found = self.findings[metric][case]
        return Clock(found.difference, found.verdict in MOVED, found.verdict is Verdict.UNCHANGED)

    def timed_apart(self, case: int) -> bool:
        """Whether device and issue time are known."""
        both = (self.findings[metric][case] for metric in (Metric.DEVICE_TIME, Metric.ISSUE_TIME))
        return all(math.isfinite(each.difference) for each in both)

    def parts_on(self, metric: Metric) -> Moves:
        """On the clock of the metric."""
        return self.device_parts if metric in ON_DEVICE else self.parts

    def who(self, metric: Metric, case: int) -> WhoMoved | None:
        """Who moved on the clock of the metric; of the host's time nobody asks."""
        return None if metric is Metric.ISSUE_TIME else self.parts_on(metric).who[case]


class CaseDecision(NamedTuple):
    """The verdict on one metric of one case, what caused it and whose latency moved."""

    verdict: Verdict
    suspected: bool
    cause: CauseClass | None
    who_moved: WhoMoved | None


def decide_case(compared: Compared, found: Finding) -> CaseDecision:
    """What the trials show is the verdict, but what the machine explains."""
    return _without_machine(compared, found, found.verdict)


def decide_never(compared: Compared, case: int, *, base: bool, head: bool) -> CaseDecision:
    """Break-even is never on a side, or on both: no number to test. It came or went because the speedup did,
    and where that is not sure it is undecided.
    """
    speedup, both = compared.findings[Metric.SPEEDUP][case], base and head
    verdict = Verdict.UNCHANGED if both else Verdict.INCONCLUSIVE
    direction = Verdict.REGRESSED if head else Verdict.IMPROVED
    if not both and speedup.verdict is direction:
        verdict = direction
    decided = _without_machine(compared, speedup, verdict)
    return decided._replace(suspected=not both and decided.suspected)


def _without_machine(compared: Compared, found: Finding, verdict: Verdict) -> CaseDecision:
    """A verdict with its cause. What the machine explains is set aside, undecided: it says nothing of the
    build. So is what is undecided because of the noise between runs, where a canary explains it.
    """
    metric, cause = found.metric, None
    if verdict in MOVED:
        cause = _cause(compared, found)
        verdict = Verdict.INCONCLUSIVE if cause is CauseClass.MACHINE else verdict
    elif verdict is Verdict.INCONCLUSIVE and found.by_runs and metric in TIMES:
        cause = CauseClass.MACHINE if is_the_machines(compared, found) else None
    return CaseDecision(
        verdict=verdict,
        suspected=found.suspected and cause is not CauseClass.MACHINE,
        cause=cause,
        who_moved=compared.who(metric, found.case) if verdict in MOVED else None,
    )


def is_the_machines(compared: Compared, found: Finding) -> bool:
    """Whether a canary explains the whole change. A break-even is judged by its speedup where that moved: a
    few percent of speedup are several times as many percent of steps.
    """
    speedup = compared.findings[Metric.SPEEDUP][found.case]
    if found.metric is Metric.BREAK_EVEN and speedup.verdict in MOVED:
        found = speedup
    canary = canary_of(compared, found)
    return canary is not None and machine_explains(found.slowdown, canary, found.reach)


def canary_of(compared: Compared, found: Finding) -> float | None:
    """Log change of the canary that moved most the way this case slowed or gained; None where none did.

    Where the sides took turns, what the machine did is in both, and a canary that differs says that its own
    code (torch's launches and copies) does.
    """
    if found.design is Design.INTERLEAVED:
        return None
    canaries = compared.canaries.of(found.metric, compared.bounds[found.case])
    return max((each for each in canaries if each * found.slowdown > 0), key=abs, default=None)


_AS_MUCH = 1.25
"""A case may feel what happens to a machine by a quarter more than its canaries do."""


def machine_explains(slowdown: float, canary: float, reach: float) -> bool:
    """Whether the machine did all of a change: the canary moved the same way, and what it leaves of the
    change is at most `reach`, the smallest change that the trials can tell, and at most half.

    `slowdown`, `canary`: log changes, positive for worse.
    """
    left = abs(slowdown) - _AS_MUCH * abs(canary)
    return canary * slowdown > 0 and left <= min(reach, abs(slowdown) / 2)


@dataclass(frozen=True)
class Canaries:
    """Median log change of the canaries of one machine; None without one.

    On a CPU `everything` is that of all of them. On a GPU the launch canary measures the host, gemm and copy
    the device, each with the clock of the metric in question where it has it.
    """

    gpu: bool
    everything: float | None
    host: dict[Metric, float | None]
    device: dict[Metric, float | None]

    def of(self, metric: Metric, bound: Bound | None) -> tuple[float, ...]:
        """The canaries that may explain a change of `metric` in a case of this class.

        Of a case on a GPU whose class nobody knows, either may.
        """
        if not self.gpu:
            chosen = [self.everything]
        elif metric in ON_DEVICE:
            chosen = [self.device[Metric.DEVICE_TIME]]
        elif metric is Metric.ISSUE_TIME:
            chosen = [self.host[Metric.ISSUE_TIME]]
        else:
            host, device = self.host[Metric.LATENCY], self.device[Metric.LATENCY]
            chosen = [host] if bound is Bound.HOST else [device] if bound is Bound.DEVICE else [device, host]
        return tuple(each for each in chosen if each is not None)

    @property
    def shown(self) -> float | None:
        """The change of the device's canaries; on a CPU that of all."""
        return self.device[Metric.LATENCY] if self.gpu else self.everything

    @property
    def shown_host(self) -> float | None:
        """The change of the launch canary on a GPU; None on a CPU, where one number stands for all."""
        return self.host[Metric.LATENCY] if self.gpu else None


def _cause(compared: Compared, found: Finding) -> CauseClass | None:
    """The cause of what moved."""
    metric, case = found.metric, found.case
    if metric is Metric.DEVICE_TIME and _same_in_cycles(compared, found):
        return CauseClass.MACHINE
    return cause_of(
        metric,
        compared.who(metric, case),
        eager_case=compared.eager[case],
        machine=is_the_machines(compared, found),
        same_build=compared.same_build,
        same_code=compared.same_code[case],
        timed_apart=compared.timed_apart(case),
        on=_bound_moved(compared, metric, case),
    )


def _same_in_cycles(compared: Compared, found: Finding) -> bool:
    """Whether device time changed because the SM clock did: in cycles less than half of it is left."""
    cycles, left = compared.cycles[found.case], 1.0 - compared.policy.canary_share
    return math.isfinite(cycles) and abs(cycles) < left * abs(found.difference)


def cause_of(
    metric: Metric,
    who: WhoMoved | None,
    *,
    eager_case: bool,
    machine: bool,
    same_build: bool,
    same_code: bool | None,
    timed_apart: bool = False,
    on: Bound | None = None,
) -> CauseClass | None:
    """Cause class of a regressed or improved row; None where the parts cannot be told apart.

    `machine` says whether a canary explains the change (`machine_explains`): memory is never the machine's.
    Eager and compiled moving together is `eager`: what they share moved (a library, a kernel), not the
    compiler. With the same build on both sides it is not the compiler's code that changed: it is one's own,
    where that differs, and the machine where that is known to be the same (`same_code`).

    `timed_apart` says whether device and issue time were measured, `on` which of the two the change comes
    from (`moved_on`): what the host does is never put down to the compiler's code.
    """
    if metric in TIMES and (machine or (same_build and same_code)):
        return CauseClass.MACHINE
    if same_build and same_code is False:
        return CauseClass.CODE
    cause = _cause_in_code(metric, who, eager_case=eager_case, timed_apart=timed_apart, on=on)
    return None if same_build and cause is CauseClass.COMPILER else cause


def _cause_in_code(
    metric: Metric, who: WhoMoved | None, *, eager_case: bool, timed_apart: bool, on: Bound | None
) -> CauseClass | None:
    if metric is Metric.ISSUE_TIME:
        return CauseClass.HOST
    cause: CauseClass | None
    if metric in RATIOS:
        compiled = CauseClass.COMPILER if who in (WhoMoved.COMPILED, WhoMoved.BOTH) else None
        cause = CauseClass.EAGER if eager_case or who is WhoMoved.EAGER else compiled
    else:
        shared = metric in (Metric.LATENCY, Metric.DEVICE_TIME) and who is WhoMoved.BOTH
        cause = CauseClass.EAGER if eager_case or shared else CauseClass.COMPILER
    by_eager_alone = metric in RATIOS and who is WhoMoved.EAGER
    if timed_apart and metric in _ON_WALL and not by_eager_alone and on is not Bound.DEVICE:
        # Of the wall time of a step it is not the code that changed, or nobody can say that it is.
        return CauseClass.HOST if on is Bound.HOST and cause is not None else None
    return cause


def _bound_moved(compared: Compared, metric: Metric, case: int) -> Bound | None:
    """Whether what changed the wall time of this case is the device or the host."""
    if not compared.timed_apart(case):
        return None
    latency = compared.findings[Metric.LATENCY][case].difference
    change = latency if metric is Metric.LATENCY else float(compared.parts.compiled[case])
    device, issue = (compared.clock(each, case) for each in (Metric.DEVICE_TIME, Metric.ISSUE_TIME))
    return moved_on(change, device, issue, compared.bounds[case])


# 4. What counts.


def counts_as(row: Row) -> str | None:
    """ "slower" or "faster" where the build did that; None of what the machine explains, and of a speedup
    that fell only because eager got faster: nobody waits longer.
    """
    if row.cause is CauseClass.MACHINE:
        return None
    if row.verdict is Verdict.REGRESSED:
        harmless = row.metric in RATIOS and row.who_moved is WhoMoved.EAGER
        return None if harmless else "slower"
    return "faster" if row.verdict is Verdict.IMPROVED else None


def counts_as_regression(row: Row) -> bool:
    """A regression of the head build."""
    return counts_as(row) == "slower"


def is_surely_worse(row: Row, policy: Policy) -> bool:
    """Whether the whole interval of a regression is as large as what counts, for what is said though nothing
    fails by it: three trials a side of two modes lie apart in some cases (docs/measured/verdicts.md, "Worse
    besides").
    """
    least = policy.for_case(row.workload, row.strategy, row.metric).minimum_effect
    return counts_as_regression(row) and row.interval is not None and row.interval[0] >= least


def group_of(rows: Sequence[Row], metric: Metric) -> str:
    """The group of a case in the tally of `metric`: whether it fails, else what its row of that metric says.
    Without one nothing is decided: a side has no value.
    """
    if any(row.fails for row in rows):
        return "failing"
    row = next((row for row in rows if row.metric is metric), None)
    if row is None:
        return "undecided"
    if is_set_aside(row):
        return "set_aside"
    undecided = (Verdict.INCONCLUSIVE, Verdict.NOT_COMPARABLE, Verdict.MISSING)
    return counts_as(row) or ("undecided" if row.verdict in undecided else "unchanged")


GROUPS = ("slower", "failing", "faster", "set_aside", "undecided", "unchanged")
"""What becomes of a case in the tally of a metric; a workload is in the first that any of its cases is in."""


def group_of_several(groups: Collection[str]) -> str:
    """The group of a workload by those of its cases: the first of these that any of them is in. So it is
    unchanged only where each case is shown to be, and undecided where nothing moved and one is open.
    """
    return next(group for group in GROUPS if group in groups)


def represents_a_group(rows: Sequence[Row], group: str) -> Row:
    """Of `rows` in one `group`, at least one, the one that is shown for all: of those that moved the one that
    moved most, else the middle one.
    """
    if group in ("slower", "faster"):
        return max(rows, key=lambda row: abs(row.log_change))
    return sorted(rows, key=lambda row: row.log_change)[(len(rows) - 1) // 2]


def is_set_aside(row: Row) -> bool:
    """Whether the machine explains what moved."""
    return row.cause is CauseClass.MACHINE


def is_worse(row: Row) -> bool:
    """Whether the number moved the wrong way; one without a change, as where a side fails, too."""
    return row.change is None or direction(row.metric, row.change) is Verdict.REGRESSED


def direction(metric: Metric, change: float) -> Verdict:
    """Whether a change of this sign is for the worse or for the better."""
    return Verdict.IMPROVED if (change > 0) == higher_is_better(metric) else Verdict.REGRESSED


def verdict_of_case(rows: Iterable[Row]) -> Verdict | None:
    """The worst verdict on a case in any metric, by what counts: one that moved has moved, for the worse
    where any metric did; only where none moved it counts what is open. None where nothing can be compared.
    """
    found = {_counted(row) for row in rows}
    worst_first = (*MOVED, Verdict.INCONCLUSIVE, Verdict.UNCHANGED)
    return next((verdict for verdict in worst_first if verdict in found), None)


def _counted(row: Row) -> Verdict:
    """What moved and does not count has harmed nobody."""
    return Verdict.UNCHANGED if row.verdict in MOVED and counts_as(row) is None else row.verdict


# 5. The comparison as a whole.

TIMED = (Metric.LATENCY, Metric.SPEEDUP)


def overall_verdict(rows: Sequence[Row], policy: Policy) -> Verdict:
    """The worst that counts: regressed if any row counts as a regression; inconclusive where something that
    got worse is open (`_is_open`), where every case fails on both sides, or where fewer than
    `policy.decided_share` of the rows, or of those of latency and speedup, say anything; else improved, else
    unchanged: no slowdown shown.
    """
    if not rows:
        return Verdict.NOT_COMPARABLE
    if any(counts_as_regression(row) for row in rows):
        return Verdict.REGRESSED
    if all(row.never_passes for row in rows):
        return Verdict.INCONCLUSIVE
    # Counts are always decided: of themselves they must not speak for timings that nobody could judge.
    timed = [row for row in rows if row.metric in TIMED]
    if any(_is_open(row, policy) for row in timed) or not (
        _decided(rows, policy) and _decided(timed, policy)
    ):
        return Verdict.INCONCLUSIVE
    improved = any(row.verdict is Verdict.IMPROVED for row in rows)
    return Verdict.IMPROVED if improved else Verdict.UNCHANGED


def _is_open(row: Row, policy: Policy) -> bool:
    """Whether it looks worse by so much, or so surely, that nobody should pass over it."""
    if row.verdict is not Verdict.INCONCLUSIVE or row.change is None or not is_worse(row):
        return False
    sure = row.q_value is not None and row.q_value <= policy.confirm.suspect_p_value
    least = policy.for_case(row.workload, row.strategy, row.metric).minimum_effect
    return sure or abs(row.log_change) >= math.log1p(max(policy.open_change, least))


def _decided(rows: Sequence[Row], policy: Policy) -> bool:
    """Whether enough of the rows say something; of none nothing is open, nor where none can be compared.

    Between separate runs nobody can show that a case is unchanged, nor always in the time that was given to
    decide it: there it is enough that a change of `policy.run_visible` would have been seen.
    """
    rows = [row for row in rows if row.verdict is not Verdict.NOT_COMPARABLE]
    decided = sum(_says_something(row, policy) for row in rows)
    return decided >= policy.decided_share * len(rows)


def _says_something(row: Row, policy: Policy) -> bool:
    if row.verdict is not Verdict.INCONCLUSIVE:
        return True
    return is_open_with_bound(row, policy) and (row.visible_change or 0.0) <= policy.run_visible


def is_open_with_bound(row: Row, policy: Policy) -> bool:
    """Whether separate runs with trials enough leave it undecided, or trials that were added until their time
    was over: what would have been seen is all that can be had.
    """
    is_bound = row.design is Design.SEPARATE_RUNS or row.until_decided
    is_enough = min(row.trials) >= policy.minimum_trials
    return is_bound and is_enough and row.verdict is Verdict.INCONCLUSIVE and row.visible_change is not None
