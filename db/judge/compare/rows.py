"""The rows of a comparison: verdict, who moved, and why. What the machine explains is set aside."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from pandas import DataFrame

from compilewatch.db.columns.metrics import MEASURED_METRICS, METRICS, SUMMARY_COLUMNS, higher_is_better
from compilewatch.db.judge.compare.counts import Counted
from compilewatch.db.judge.compare.who_moved import (
    TIMES,
    Moves,
    cause_of,
    machine_explains,
    moved_on,
    relative,
)
from compilewatch.db.judge.decide import Decision, Evidence
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import CaseKey, Clock, Row
from compilewatch.db.judge.significance import interval, relative_changes, smallest_visible_change
from compilewatch.db.judge.statistics.case_classes import Canaries
from compilewatch.db.judge.words import sentences
from compilewatch.db.metrics.groups import Floats, Ints, equal_to, floats
from compilewatch.db.records.vocabulary import Bound, CauseClass, Design, Metric, Verdict, WhoMoved

NEVER = "never"
_MOVED = (Verdict.REGRESSED, Verdict.IMPROVED)
_COMPILED_ONLY = (Metric.SPEEDUP, Metric.DEVICE_SPEEDUP, Metric.COMPILE_COST, Metric.BREAK_EVEN)
_ON_DEVICE = (Metric.DEVICE_TIME, Metric.DEVICE_SPEEDUP)
_SUMMED_UP = tuple(metric for metric in MEASURED_METRICS if metric not in (*_ON_DEVICE, Metric.ISSUE_TIME))
"""Metrics whose value of a side its summary says; of the others the trials that were compared do."""


@dataclass(frozen=True)
class Context:
    """What every row of a comparison shares. `base` and `head` are the values of each case as its summary
    says them (`side_values`), `same_code` whether one's own code is the same on both sides of each
    (`db.judge.compare.code`), `eager` says which cases are eager ones. `device_parts` are those of device
    time, `cycles` the log change of device time in cycles of each case, NaN where the SM clock stood still.
    `timed_by_two` holds the methods of compiled and eager of a case where these are two.
    """

    keys: tuple[CaseKey, ...]
    base: SideValues
    head: SideValues
    eager: list[bool]
    parts: Moves
    device_parts: Moves
    bounds: tuple[Bound | None, ...]
    canaries: Canaries
    cycles: list[float]
    findings: dict[Metric, Findings]
    timed_by_two: dict[int, tuple[str, str]]
    same_build: bool
    same_code: list[bool | None]
    policy: Policy

    def clock(self, metric: Metric, case: int) -> Clock:
        findings = self.findings[metric]
        verdict = findings.verdict[case]
        return Clock(findings.difference[case], verdict in _MOVED, verdict is Verdict.UNCHANGED)

    def timed_apart(self, case: int) -> bool:
        both = (self.findings[metric].difference[case] for metric in (Metric.DEVICE_TIME, Metric.ISSUE_TIME))
        return all(math.isfinite(each) for each in both)

    def bound_moved(self, metric: Metric, case: int) -> Bound | None:
        """Whether what changed the wall time of this case is the device or the host."""
        if not self.timed_apart(case):
            return None
        latency = self.findings[Metric.LATENCY].difference[case]
        change = latency if metric is Metric.LATENCY else float(self.parts.compiled[case])
        device, issue = (self.clock(each, case) for each in (Metric.DEVICE_TIME, Metric.ISSUE_TIME))
        return moved_on(change, device, issue, self.bounds[case])

    def parts_of(self, metric: Metric, case: int) -> dict[str, Any]:
        """Eager's and the compiled one's change, on the clock of the metric."""
        eager, compiled = self.parts_on(metric).changes
        return {"eager_change": eager[case], "compiled_change": compiled[case]}

    def parts_on(self, metric: Metric) -> Moves:
        """On the clock of the metric."""
        return self.device_parts if metric in _ON_DEVICE else self.parts

    def shared(self, metric: Metric, case: int) -> dict[str, Any]:
        """What all rows of this metric of the case say, with the clocks of the case."""
        return {
            "case": self.keys[case],
            "metric": metric,
            "unit": METRICS[metric].unit,
            "bound": self.bounds[case],
            "device_change": self.findings[Metric.DEVICE_TIME].change[case],
            "issue_change": self.findings[Metric.ISSUE_TIME].change[case],
            "cycles_change": relative(self.cycles[case]),
        }

    def who(self, metric: Metric, case: int) -> WhoMoved | None:
        """Who moved on the clock of the metric; of the host's time nobody asks."""
        return None if metric is Metric.ISSUE_TIME else self.parts_on(metric).who[case]


SideValues = dict[Metric, list[float | str | None]]
"""The values of one side in the metric's unit, one per case; a break-even may be `NEVER`."""


def side_values(summary: DataFrame, places: Ints) -> SideValues:
    """Of the cases in these places of `summary` (`db.metrics.cases.case_values`)."""
    values: SideValues = {}
    for metric in _SUMMED_UP:
        numbers = floats(summary[SUMMARY_COLUMNS[metric]])[places].tolist()
        values[metric] = [None if math.isnan(each) else each for each in numbers]
    never = equal_to(summary["break_even"], NEVER)[places].tolist()
    steps = values[Metric.BREAK_EVEN]
    values[Metric.BREAK_EVEN] = [NEVER if each else n for each, n in zip(never, steps, strict=True)]
    return values


@dataclass(frozen=True)
class Findings:
    """One metric of every case as plain values, which rows take one by one: to take them from arrays costs
    several times as much.

    `difference` is log(head / base); `change`, the ends of `interval` and `threshold`, the smallest change
    that these trials could show, are relative and None where the noise is unknown. `reach` is the log change
    that they could show if runs did not differ. `level` is the log value
    of each side, `more_trials` those a side that would decide it, None where it is decided or nobody can say.
    """

    metric: Metric
    margin: list[float]
    difference: list[float]
    change: list[float | None]
    interval: list[tuple[float, float] | None]
    threshold: list[float | None]
    p_value: list[float | None]
    q_value: list[float | None]
    verdict: list[Verdict]
    suspected: list[bool]
    enough_trials: list[bool]
    level: list[tuple[float, float]]
    trials: list[tuple[int, int]]
    more_trials: list[int | None]
    unseen: list[int | None]
    identical: list[bool]
    ranked: list[bool]
    held_back: list[bool]
    by_runs: list[bool]
    reach: list[float]
    visible: list[float | None]
    design: list[Design]

    @classmethod
    def of(cls, metric: Metric, evidence: Evidence, decision: Decision, confidence: float) -> Findings:
        """With intervals at this confidence."""
        low, high = (ends.tolist() for ends in interval(evidence.test, confidence))
        difference = evidence.test.difference.tolist()
        designs = {True: Design.INTERLEAVED, False: Design.SEPARATE_RUNS}
        return cls(
            metric=metric,
            margin=decision.margin.tolist(),
            difference=difference,
            change=list(map(relative, difference)),
            interval=[
                ends if math.isfinite(ends[0]) and math.isfinite(ends[1]) else None
                for ends in zip(low, high, strict=True)
            ],
            threshold=_finite(smallest_visible_change(evidence.test, confidence)),
            p_value=_finite(evidence.test.p_value),
            q_value=_finite(decision.q_value),
            verdict=decision.verdicts,
            suspected=decision.suspected.tolist(),
            enough_trials=decision.enough_trials.tolist(),
            level=[(base, head) for base, head in evidence.level.tolist()],
            trials=[(base, head) for base, head in evidence.trials.tolist()],
            more_trials=[more or None for more in decision.more_trials.tolist()],
            unseen=[needed or None for needed in decision.unseen.tolist()],
            identical=evidence.identical.tolist(),
            ranked=evidence.ranked.tolist(),
            held_back=decision.held_back.tolist(),
            by_runs=decision.by_runs.tolist(),
            reach=np.log1p(np.nan_to_num(smallest_visible_change(evidence.within, confidence))).tolist(),
            visible=_finite(relative_changes(decision.visible)),
            design=[designs[each] for each in evidence.interleaved.tolist()],
        )

    def values(self, case: int) -> tuple[float | None, float | None]:
        """The values of both sides by the trials that were compared; None where a side has none."""
        base, head = (None if math.isnan(each) else _level(each) for each in self.level[case])
        return base, head

    def levels(self, case: int, *summary: float | str) -> tuple[float | str, ...]:
        """The values of both sides as they were compared: geometric means of the trials that were, of a
        break-even in whole steps. A side without such a trial has its summary's.
        """
        both = zip(self.values(case), summary, strict=True)
        levels = (theirs if mine is None else mine for mine, theirs in both)
        if self.metric is not Metric.BREAK_EVEN:
            return tuple(levels)
        return tuple(float(max(1, math.ceil(each))) for each in map(float, levels))

    def change_between(
        self, case: int, base: float | str, head: float | str
    ) -> tuple[float | None, tuple[float, float] | None]:
        """The change of a case and its interval; of a break-even that of whole steps, `base` and `head`."""
        change, reach = self.change[case], self.interval[case]
        if self.metric is Metric.BREAK_EVEN and change is not None:
            change = float(head) / float(base) - 1.0
            reach = reach and (min(reach[0], change), max(reach[1], change))
        return change, reach


def _level(log: float) -> float:
    """Of one trial its own value again: the logarithm and back cost the last of a float's digits."""
    return float(f"{math.exp(log):.12g}")


def measured_row(context: Context, case: int, findings: Findings, speedup: Findings) -> Row | None:
    """The row of one measured metric of one case; None where a side has no such value.

    `speedup` is what was found of the speedups: they decide a break-even that comes or goes.
    """
    metric = findings.metric
    base, head = (
        (context.base[metric][case], context.head[metric][case])
        if metric in _SUMMED_UP
        else findings.values(case)
    )
    if base is None or head is None or (metric in _COMPILED_ONLY and context.eager[case]):
        return None
    if NEVER in (base, head):
        return _never_row(context, case, speedup, (base, head))
    verdict, cause = _judged(context, case, findings, findings.verdict[case])
    moved = verdict in _MOVED
    base, head = findings.levels(case, base, head)
    change, reach = findings.change_between(case, base, head)
    return Row(
        **context.shared(metric, case),
        base=base,
        head=head,
        change=change,
        interval=reach,
        p_value=findings.p_value[case],
        q_value=findings.q_value[case],
        verdict=verdict,
        suspected=findings.suspected[case] and cause is not CauseClass.MACHINE,
        who_moved=context.who(metric, case) if moved else None,
        cause=cause,
        **context.parts_of(metric, case),
        trials=findings.trials[case],
        more_trials=findings.more_trials[case],
        unseen=findings.unseen[case],
        significance_threshold=findings.threshold[case],
        visible_change=findings.visible[case],
        design=findings.design[case],
        reason=_reason(context, case, findings, cause),
    )


def incomparable_row(context: Context, case: int, findings: Findings) -> Row:
    """The row of a device speedup that a side lacks: device times of two methods make no speedup."""
    base, head = findings.values(case)
    return Row(
        **context.shared(findings.metric, case),
        base=base,
        head=head,
        verdict=Verdict.NOT_COMPARABLE,
        cause=CauseClass.METHOD,
        trials=findings.trials[case],
        design=findings.design[case],
        reason=sentences.timed_by_two(*context.timed_by_two[case]),
    )


def _never_row(
    context: Context, case: int, speedup: Findings, values: tuple[float | str, float | str]
) -> Row:
    """Break-even is never on a side: no number to test. It came or went because the speedup did."""
    both = values == (NEVER, NEVER)
    verdict = Verdict.UNCHANGED if both else Verdict.INCONCLUSIVE
    direction = Verdict.REGRESSED if values[1] == NEVER else Verdict.IMPROVED
    if not both and speedup.verdict[case] is direction:
        verdict = direction
    verdict, cause = _judged(context, case, speedup, verdict)
    moved = verdict in _MOVED
    return Row(
        **context.shared(Metric.BREAK_EVEN, case),
        base=values[0],
        head=values[1],
        verdict=verdict,
        suspected=not both and speedup.suspected[case] and cause is not CauseClass.MACHINE,
        who_moved=context.parts.who[case] if moved else None,
        cause=cause,
        **context.parts_of(Metric.BREAK_EVEN, case),
        trials=speedup.trials[case],
        more_trials=speedup.more_trials[case] if verdict is Verdict.INCONCLUSIVE else None,
        unseen=speedup.unseen[case] if verdict is Verdict.INCONCLUSIVE else None,
        design=speedup.design[case],
        reason=sentences.never(values[0] == NEVER, values[1] == NEVER, sure=moved),
    )


def counted_row(context: Context, counted: Counted) -> Row:
    """The row of one metric that is compared exactly."""
    eager = context.eager[counted.case]
    moved = counted.verdict in _MOVED
    return Row(
        **context.shared(counted.metric, counted.case),
        base=counted.base,
        head=counted.head,
        verdict=counted.verdict,
        suspected=counted.suspected,
        cause=(CauseClass.EAGER if eager else CauseClass.COMPILER) if moved else None,
        trials=counted.trials,
        design=Design.SEPARATE_RUNS,
        reason=counted.reason,
    )


def _finite(values: Floats) -> list[float | None]:
    return [each if math.isfinite(each) else None for each in values.tolist()]


def _judged(
    context: Context, case: int, findings: Findings, verdict: Verdict
) -> tuple[Verdict, CauseClass | None]:
    """A verdict with its cause. What the machine explains is set aside: it says nothing of the build."""
    if verdict in _MOVED:
        cause = _cause(context, case, findings)
        return (Verdict.INCONCLUSIVE if cause is CauseClass.MACHINE else verdict), cause
    blamed = verdict is Verdict.INCONCLUSIVE and findings.by_runs[case] and findings.metric in TIMES
    is_machine = blamed and _machine_explains(context, case, findings)
    return verdict, CauseClass.MACHINE if is_machine else None


def _cause(context: Context, case: int, findings: Findings) -> CauseClass | None:
    metric = findings.metric
    if metric is Metric.DEVICE_TIME and _same_in_cycles(context, case):
        return CauseClass.MACHINE
    return cause_of(
        metric,
        context.who(metric, case),
        eager_case=context.eager[case],
        machine=_machine_explains(context, case, findings),
        same_build=context.same_build,
        same_code=context.same_code[case],
        timed_apart=context.timed_apart(case),
        on=context.bound_moved(metric, case),
    )


def _machine_explains(context: Context, case: int, findings: Findings) -> bool:
    """Whether a canary explains the whole change; of a break-even that of the speedup, of which it makes
    several times as much.
    """
    speedup = context.findings[Metric.SPEEDUP]
    if findings.metric is Metric.BREAK_EVEN and speedup.verdict[case] in _MOVED:
        findings = speedup
    canary = _canary(context, case, findings)
    return canary is not None and machine_explains(*_beside(context, case, findings, canary))


def _canary(context: Context, case: int, findings: Findings) -> float | None:
    """Log change of the canary that moved most the way this case slowed or gained; None where none did.

    Where the sides took turns, what the machine did is in both, and a canary that differs says that its own
    code (torch's launches and copies) does.
    """
    if findings.design[case] is Design.INTERLEAVED:
        return None
    slowdown = _slowdown(findings, case)
    canaries = context.canaries.of(findings.metric, context.bounds[case])
    return max((each for each in canaries if each * slowdown > 0), key=abs, default=None)


def _beside(context: Context, case: int, findings: Findings, canary: float) -> tuple[float, float, float]:
    """The slowdown of a case, the canary's, and the size below which its trials tell no change."""
    key = context.keys[case]
    effect = context.policy.for_case(key.workload, key.strategy, findings.metric).minimum_effect
    return _slowdown(findings, case), canary, max(findings.reach[case], math.log1p(effect))


def _slowdown(findings: Findings, case: int) -> float:
    difference = findings.difference[case]
    return -difference if higher_is_better(findings.metric) else difference


def _same_in_cycles(context: Context, case: int) -> bool:
    """Whether device time changed because the SM clock did: in cycles less than half of it is left."""
    seconds, cycles = context.findings[Metric.DEVICE_TIME].difference[case], context.cycles[case]
    return math.isfinite(cycles) and abs(cycles) < (1.0 - context.policy.canary_share) * abs(seconds)


def _reason(context: Context, case: int, findings: Findings, cause: CauseClass | None) -> str:  # noqa: PLR0911
    verdict, reach, trials = findings.verdict[case], findings.interval[case], findings.trials[case]
    metric = findings.metric
    if cause is CauseClass.MACHINE:
        canary = _canary(context, case, findings)
        aside = sentences.set_aside(
            metric,
            math.expm1(findings.difference[case]),
            None if canary is None else math.expm1(canary),
            interleaved=findings.design[case] is Design.INTERLEAVED,
        )
        return " ".join((aside, *_clocks(context, case, metric)))
    if verdict in _MOVED:
        parts = context.parts_of(metric, case)
        sentence = sentences.moved(
            metric,
            math.expm1(findings.difference[case]),
            context.who(metric, case),
            eager=parts["eager_change"],
            compiled=parts["compiled_change"],
        )
        if findings.ranked[case]:
            sentence += f" {sentences.RANKED}"
        canary = _canary(context, case, findings)
        if canary is not None and not _machine_explains(context, case, findings):
            sentence += f" {sentences.falls_short(math.expm1(canary))}"
        return " ".join((sentence, *_clocks(context, case, metric)))
    if findings.identical[case] and verdict is Verdict.UNCHANGED:
        return sentences.IDENTICAL
    if verdict is Verdict.UNCHANGED and reach is not None:
        return sentences.unchanged(reach, findings.margin[case])
    if min(trials) == 0:
        return sentences.not_testable(findings.metric)
    if not findings.enough_trials[case]:
        needed = context.policy.minimum_trials
        return sentences.too_few(trials, needed, suspected=findings.suspected[case])
    if findings.held_back[case]:
        return sentences.few_and_noisy(trials, context.policy.few_trials)
    if findings.by_runs[case]:
        return sentences.between_runs(findings.visible[case])
    return sentences.inconclusive(
        reach, findings.more_trials[case], findings.unseen[case], context.policy.advice_effect
    )


def _clocks(context: Context, case: int, metric: Metric) -> Iterator[str]:
    """What the device and the host did, where a wall time moved, and what cycles say of device time."""
    if metric in (Metric.LATENCY, Metric.SPEEDUP) and context.timed_apart(case):
        device, issue = (context.clock(each, case) for each in (Metric.DEVICE_TIME, Metric.ISSUE_TIME))
        yield sentences.device_and_host(device, issue)
    cycles = context.cycles[case]
    if metric is Metric.DEVICE_TIME and math.isfinite(cycles):
        clock = cycles - context.findings[Metric.DEVICE_TIME].difference[case]
        yield sentences.in_cycles(math.expm1(cycles), math.expm1(clock))
