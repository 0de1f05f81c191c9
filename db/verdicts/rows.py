"""From arrays over cases to the rows people read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from db.metrics.groups import Floats
from db.records import StrategyKind
from db.verdicts import sentences
from db.verdicts.counts import Counted
from db.verdicts.judgement import Judged, Tested
from db.verdicts.moderated_t import TTest
from db.verdicts.policy import Policy
from db.verdicts.results import CaseKey, Row
from db.verdicts.significance import interval, smallest_visible_change
from db.verdicts.vocabulary import (
    METRIC_UNITS,
    SUMMARY_COLUMNS,
    CauseClass,
    Design,
    Metric,
    Verdict,
    higher_is_better,
)
from db.verdicts.who_moved import Parts, cause_of

NEVER = "never"
_MOVED = (Verdict.REGRESSED, Verdict.IMPROVED)


@dataclass(frozen=True)
class Context:
    """What every row of a comparison shares. `base` and `head` are each case's summary
    (`db.metrics.case_columns`); `canary` is the canary's log latency change.
    """

    keys: tuple[CaseKey, ...]
    base: list[dict[str, Any]]
    head: list[dict[str, Any]]
    parts: Parts
    canary: float | None
    same_build: bool
    policy: Policy

    def is_eager(self, case: int) -> bool:
        """Whether the case of this number is an eager one."""
        return bool(self.base[case]["strategy_kind"] == StrategyKind.EAGER.value)


@dataclass(frozen=True)
class Reach:
    """Per case: the ends of the relative change, and the smallest change that could show."""

    low: Floats
    high: Floats
    threshold: Floats

    @classmethod
    def of(cls, test: TTest, confidence: float) -> Reach:
        """At this confidence, of one metric."""
        return cls(*interval(test, confidence), smallest_visible_change(test, confidence))


@dataclass(frozen=True)
class Finding:
    """One metric of one case within the arrays over all cases."""

    metric: Metric
    case: int
    tested: Tested
    judged: Judged
    reach: Reach

    @property
    def difference(self) -> float:
        """log(head / base)."""
        return float(self.tested.test.difference[self.case])

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the metric got better or worse, by the flags; inconclusive where none is set."""
        if self.judged.grew[self.case] or self.judged.shrank[self.case]:
            better = bool(self.judged.grew[self.case]) == higher_is_better(self.metric)
            return Verdict.IMPROVED if better else Verdict.REGRESSED
        return Verdict.UNCHANGED if self.judged.same[self.case] else Verdict.INCONCLUSIVE

    @property
    def trials(self) -> tuple[int, int]:
        """Trials of base and head."""
        base, head = self.tested.contrasts.trials[self.case].tolist()
        return base, head

    @property
    def design(self) -> Design:
        """How the trials of both sides were arranged in time."""
        return Design.INTERLEAVED if self.tested.contrasts.interleaved[self.case] else Design.SEPARATE_RUNS

    def level(self, side: int, summary: float | str) -> float | str:
        """The side's value as it was compared: the geometric mean of the trials that were.

        A median over trials beside a change of means would contradict it where trials scatter. Break-even
        is the formula's, of the side as a whole.
        """
        level = float(self.tested.contrasts.level[self.case, side])
        return summary if self.metric is Metric.BREAK_EVEN or math.isnan(level) else math.exp(level)

    @property
    def more_trials(self) -> int | None:
        """Trials a side that would decide it; None where it is decided or nobody can say."""
        return int(self.judged.more_trials[self.case]) or None

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the relative change; None where the noise is unknown."""
        low, high = float(self.reach.low[self.case]), float(self.reach.high[self.case])
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None

    @property
    def threshold(self) -> float | None:
        """The smallest relative change these trials could show; None where the noise is unknown."""
        return _finite(self.reach.threshold[self.case])


def measured_row(context: Context, finding: Finding, speedup: Finding) -> Row | None:
    """The row of one measured metric of one case; None where a side has no such value.

    `speedup` is the finding on the same case's speedup: it decides a break-even that comes or goes.
    """
    metric, case = finding.metric, finding.case
    base, head = (_value(summary[case], metric) for summary in (context.base, context.head))
    compiled_only = metric in (Metric.SPEEDUP, Metric.COMPILE_COST, Metric.BREAK_EVEN)
    if base is None or head is None or (compiled_only and context.is_eager(case)):
        return None
    if NEVER in (base, head):
        return _never_row(context, finding, speedup, (base, head))
    moved = finding.verdict in _MOVED
    return Row(
        case=context.keys[case],
        metric=metric,
        unit=METRIC_UNITS[metric],
        base=finding.level(0, base),
        head=finding.level(1, head),
        change=_relative(finding.difference),
        interval=finding.interval,
        p_value=_finite(finding.tested.test.p_value[case]),
        q_value=_finite(finding.judged.q_value[case]),
        verdict=finding.verdict,
        suspected=bool(finding.judged.suspected[case]),
        who_moved=context.parts.who(case) if moved else None,
        cause=_cause(context, finding) if moved else None,
        eager_change=_relative(context.parts.eager[case]),
        compiled_change=_relative(context.parts.compiled[case]),
        trials=finding.trials,
        more_trials=finding.more_trials,
        significance_threshold=finding.threshold,
        design=finding.design,
        reason=_reason(context, finding),
    )


def _never_row(
    context: Context, finding: Finding, speedup: Finding, values: tuple[float | str, float | str]
) -> Row:
    """Break-even is never on a side: no number to test. It came or went because the speedup did."""
    case = finding.case
    both = values == (NEVER, NEVER)
    verdict = Verdict.UNCHANGED if both else Verdict.INCONCLUSIVE
    if not both and speedup.verdict is (Verdict.REGRESSED if values[1] == NEVER else Verdict.IMPROVED):
        verdict = speedup.verdict
    moved = verdict in _MOVED
    return Row(
        case=context.keys[case],
        metric=finding.metric,
        unit=METRIC_UNITS[finding.metric],
        base=values[0],
        head=values[1],
        verdict=verdict,
        suspected=not both and bool(speedup.judged.suspected[case]),
        who_moved=context.parts.who(case) if moved else None,
        cause=_cause(context, speedup) if moved else None,
        eager_change=_relative(context.parts.eager[case]),
        compiled_change=_relative(context.parts.compiled[case]),
        trials=speedup.trials,
        more_trials=speedup.more_trials if verdict is Verdict.INCONCLUSIVE else None,
        design=speedup.design,
        reason=sentences.never(values[0] == NEVER, values[1] == NEVER, sure=moved),
    )


def counted_row(context: Context, counted: Counted) -> Row:
    """The row of one metric that is compared exactly."""
    eager = context.is_eager(counted.case)
    moved = counted.verdict in _MOVED
    return Row(
        case=context.keys[counted.case],
        metric=counted.metric,
        unit=METRIC_UNITS[counted.metric],
        base=counted.base,
        head=counted.head,
        verdict=counted.verdict,
        suspected=counted.suspected,
        cause=(CauseClass.EAGER if eager else CauseClass.COMPILER) if moved else None,
        trials=counted.trials,
        design=Design.SEPARATE_RUNS,
        reason=counted.reason,
    )


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _value(summary: dict[str, Any], metric: Metric) -> float | str | None:
    if metric is Metric.BREAK_EVEN and summary["break_even"] == NEVER:
        return NEVER
    value = summary[SUMMARY_COLUMNS[metric]]
    return None if value is None or value is pd.NA or math.isnan(value) else float(value)


def _relative(difference: float) -> float | None:
    """A log ratio as a relative change."""
    return math.expm1(difference) if math.isfinite(difference) else None


def _cause(context: Context, finding: Finding) -> CauseClass | None:
    higher = higher_is_better(finding.metric)
    return cause_of(
        finding.metric,
        -finding.difference if higher else finding.difference,
        context.parts.who(finding.case),
        eager_case=context.is_eager(finding.case),
        canary=context.canary,
        interleaved=finding.design is Design.INTERLEAVED,
        same_build=context.same_build,
        policy=context.policy,
    )


def _reason(context: Context, finding: Finding) -> str:
    metric, case, policy = finding.metric, finding.case, context.policy
    reach = finding.interval
    if finding.verdict in _MOVED:
        return sentences.moved(
            metric,
            math.expm1(finding.difference),
            context.parts.who(case),
            eager=_relative(context.parts.eager[case]),
            compiled=_relative(context.parts.compiled[case]),
        )
    if finding.verdict is Verdict.UNCHANGED and reach is not None:
        key = context.keys[case]
        return sentences.unchanged(
            reach, policy.for_case(key.workload, key.strategy, metric).unchanged_margin
        )
    if min(finding.trials) == 0:
        return sentences.not_testable(metric)
    if not finding.judged.enough_trials[case]:
        suspected = bool(finding.judged.suspected[case])
        return sentences.too_few(finding.trials, policy.minimum_trials, suspected=suspected)
    return sentences.inconclusive(reach, finding.more_trials)
