"""The rows of a comparison: what `db.judge.decide` decided of each metric of each case, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from pandas import DataFrame

from compilewatch.db.columns.metrics import MEASURED_METRICS, METRICS, SUMMARY_COLUMNS
from compilewatch.db.judge import sentences
from compilewatch.db.judge.compare.measured import Counted, WithoutRatio
from compilewatch.db.judge.decide import (
    MOVED,
    ON_DEVICE,
    Compared,
    Decision,
    Evidence,
    Finding,
    canary_of,
    cause_of_count,
    decide_case,
    decide_never,
    is_the_machines,
)
from compilewatch.db.judge.results import CaseKey, Row
from compilewatch.db.judge.significance import interval, relative_changes, smallest_visible_change
from compilewatch.db.judge.who_moved import relative
from compilewatch.db.metrics.groups import Floats, Ints, equal_to, floats
from compilewatch.db.records.vocabulary import CauseClass, Design, Metric, Verdict

NEVER = "never"
_COMPILED_ONLY = (Metric.SPEEDUP, Metric.DEVICE_SPEEDUP, Metric.COMPILE_COST, Metric.BREAK_EVEN)
_SUMMED_UP = tuple(metric for metric in MEASURED_METRICS if metric not in (*ON_DEVICE, Metric.ISSUE_TIME))
"""Metrics whose value of a side its summary says; of the others the trials that were compared do."""


@dataclass(frozen=True)
class Context(Compared):
    """What every row of a comparison shares: what was decided by, and what the sides are called. `base` and
    `head` are the values of each case as its summary says them (`side_values`). `timed_by_two` holds the
    methods of compiled and eager of a case where these are two, `without_ratio` what has a value of 0 by
    metric and case, `until_decided` says whether trials of the
    head were judged as they came.
    """

    keys: tuple[CaseKey, ...]
    base: SideValues
    head: SideValues
    timed_by_two: dict[int, tuple[str, str]]
    without_ratio: dict[Metric, dict[int, WithoutRatio]]
    until_decided: bool

    def parts_of(self, metric: Metric, case: int) -> dict[str, Any]:
        """Eager's and the compiled one's change, on the clock of the metric."""
        eager, compiled = self.parts_on(metric).changes
        return {"eager_change": eager[case], "compiled_change": compiled[case]}

    def shared(self, metric: Metric, case: int) -> dict[str, Any]:
        """What all rows of this metric of the case say, with the clocks of the case."""
        return {
            "case": self.keys[case],
            "metric": metric,
            "unit": METRICS[metric].unit,
            "until_decided": self.until_decided,
            "bound": self.bounds[case],
            "device_change": self.findings[Metric.DEVICE_TIME][case].change,
            "issue_change": self.findings[Metric.ISSUE_TIME][case].change,
            "cycles_change": relative(self.cycles[case]),
        }


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


def findings_of(metric: Metric, evidence: Evidence, decision: Decision, confidence: float) -> list[Finding]:
    """Of every case, with intervals at this confidence."""
    # Of trials that were looked at as they came, every interval holds at once.
    confidences = 1.0 - (1.0 - confidence) * evidence.share
    low, high = (ends.tolist() for ends in interval(evidence.test, confidences))
    difference = evidence.test.difference.tolist()
    designs = {True: Design.INTERLEAVED, False: Design.SEPARATE_RUNS}
    of_trials = np.log1p(np.nan_to_num(smallest_visible_change(evidence.within, confidences)))
    columns: dict[str, list[Any]] = {
        "metric": [metric] * len(difference),
        "case": [*range(len(difference))],
        "verdict": decision.verdicts,
        "suspected": decision.suspected.tolist(),
        "enough_trials": decision.enough_trials.tolist(),
        "held_back": decision.held_back.tolist(),
        "by_runs": decision.by_runs.tolist(),
        "identical": evidence.identical.tolist(),
        "ranked": evidence.ranked.tolist(),
        "design": [designs[each] for each in evidence.interleaved.tolist()],
        "difference": difference,
        "change": [*map(relative, difference)],
        "interval": [
            ends if math.isfinite(ends[0]) and math.isfinite(ends[1]) else None
            for ends in zip(low, high, strict=True)
        ],
        "threshold": _finite(smallest_visible_change(evidence.test, confidences)),
        "visible": _finite(relative_changes(decision.visible)),
        "reach": np.maximum(of_trials, np.log1p(decision.minimum_effect)).tolist(),
        "margin": decision.margin.tolist(),
        "p_value": _finite(evidence.test.p_value),
        "q_value": _finite(decision.q_value),
        "level": [*map(tuple, evidence.level.tolist())],
        "trials": [*map(tuple, evidence.trials.tolist())],
        "more_trials": [more or None for more in decision.more_trials.tolist()],
        "unseen": [needed or None for needed in decision.unseen.tolist()],
    }
    return [*map(Finding._make, zip(*(columns[name] for name in Finding._fields), strict=True))]


def _finite(values: Floats) -> list[float | None]:
    return [each if math.isfinite(each) else None for each in values.tolist()]


def measured_row(context: Context, found: Finding) -> Row | None:
    """The row of one measured metric of one case; None where a side has no such value."""
    metric, case = found.metric, found.case
    if (values := context.without_ratio.get(metric, {}).get(case)) is not None:
        return _row_without_ratio(context, found, values)
    base, head = (
        (context.base[metric][case], context.head[metric][case]) if metric in _SUMMED_UP else _values(found)
    )
    if base is None or head is None or (metric in _COMPILED_ONLY and context.eager[case]):
        return None
    if NEVER in (base, head):
        return _never_row(context, case, (base, head))
    decided = decide_case(context, found)
    base, head = _levels(found, base, head)
    change, reach = _change_between(found, base, head)
    return Row(
        **context.shared(metric, case),
        base=base,
        head=head,
        change=change,
        interval=reach,
        p_value=found.p_value,
        q_value=found.q_value,
        **decided._asdict(),
        **context.parts_of(metric, case),
        trials=found.trials,
        more_trials=found.more_trials,
        unseen=found.unseen,
        significance_threshold=found.threshold,
        visible_change=found.visible,
        design=found.design,
        reason=_reason(context, found, decided.cause),
    )


def _values(found: Finding) -> tuple[float | None, float | None]:
    """The values of both sides by the trials that were compared; None where a side has none."""
    base, head = (None if math.isnan(each) else _level(each) for each in found.level)
    return base, head


def _level(log: float) -> float:
    """Of one trial its own value again: the logarithm and back cost the last of a float's digits."""
    return float(f"{math.exp(log):.12g}")


def _levels(found: Finding, *summary: float | str) -> tuple[float | str, ...]:
    """The values of both sides as they were compared: geometric means of the trials that were, of a
    break-even in whole steps. A side without such a trial has its summary's.
    """
    both = zip(_values(found), summary, strict=True)
    levels = (theirs if mine is None else mine for mine, theirs in both)
    if found.metric is not Metric.BREAK_EVEN:
        return tuple(levels)
    return tuple(float(max(1, math.ceil(each))) for each in map(float, levels))


def _change_between(
    found: Finding, base: float | str, head: float | str
) -> tuple[float | None, tuple[float, float] | None]:
    """The change of a case and its interval; of a break-even that of whole steps, `base` and `head`."""
    change, reach = found.change, found.interval
    if found.metric is Metric.BREAK_EVEN and change is not None:
        change = float(head) / float(base) - 1.0
        reach = reach and (min(reach[0], change), max(reach[1], change))
    return change, reach


def _row_without_ratio(context: Context, found: Finding, values: WithoutRatio) -> Row:
    """The row of a metric that is 0 in a trial of the case: both values, and a sentence for a percentage."""
    decided = decide_case(context, found)
    return Row(
        **context.shared(found.metric, found.case),
        base=values.base,
        head=values.head,
        p_value=found.p_value,
        q_value=found.q_value,
        **decided._asdict(),
        trials=values.trials,
        more_trials=found.more_trials,
        design=found.design,
        reason=_why_without_ratio(context, found, values),
    )


def _why_without_ratio(context: Context, found: Finding, values: WithoutRatio) -> str:
    metric = found.metric
    if not values.tested:
        return sentences.not_measured(metric, values.base, values.head)
    if found.verdict in MOVED:
        return sentences.moved_without_ratio(metric, values.base, values.head)
    if found.verdict is Verdict.UNCHANGED:
        return sentences.unchanged_without_ratio(found.margin)
    if not found.enough_trials:
        return sentences.too_few(values.trials, context.policy.minimum_trials, suspected=False)
    if found.held_back:
        return sentences.few_and_noisy(values.trials, context.policy.few_trials)
    return sentences.open_without_ratio(metric, values.base, values.head)


def incomparable_row(context: Context, found: Finding) -> Row:
    """The row of a device speedup that a side lacks: device times of two methods make no speedup."""
    base, head = _values(found)
    return Row(
        **context.shared(found.metric, found.case),
        base=base,
        head=head,
        verdict=Verdict.NOT_COMPARABLE,
        cause=CauseClass.METHOD,
        trials=found.trials,
        design=found.design,
        reason=sentences.timed_by_two(*context.timed_by_two[found.case]),
    )


def _never_row(context: Context, case: int, values: tuple[float | str, float | str]) -> Row:
    """Break-even is never on a side: what is known of the speedup speaks for it."""
    base, head = (each == NEVER for each in values)
    speedup = context.findings[Metric.SPEEDUP][case]
    decided = decide_never(context, case, base=base, head=head)
    is_open = decided.verdict is Verdict.INCONCLUSIVE
    return Row(
        **context.shared(Metric.BREAK_EVEN, case),
        base=values[0],
        head=values[1],
        **decided._asdict(),
        **context.parts_of(Metric.BREAK_EVEN, case),
        trials=speedup.trials,
        more_trials=speedup.more_trials if is_open else None,
        unseen=speedup.unseen if is_open else None,
        design=speedup.design,
        reason=sentences.never(base, head, sure=decided.verdict in MOVED),
    )


def counted_row(context: Context, counted: Counted) -> Row:
    """The row of one metric that is compared exactly."""
    return Row(
        **context.shared(counted.metric, counted.case),
        base=counted.base,
        head=counted.head,
        verdict=counted.verdict,
        suspected=counted.suspected,
        cause=cause_of_count(counted.verdict, eager_case=context.eager[counted.case]),
        trials=counted.trials,
        design=Design.SEPARATE_RUNS,
        reason=counted.reason,
    )


def _reason(context: Context, found: Finding, cause: CauseClass | None) -> str:
    """In a sentence why the verdict is what it is, and what the clocks say of it."""
    if cause is not CauseClass.MACHINE and found.verdict not in MOVED:
        return _not_moved(context, found)
    change, canary = math.expm1(found.difference), canary_of(context, found)
    of_canary = None if canary is None else math.expm1(canary)
    if cause is CauseClass.MACHINE:
        is_interleaved = found.design is Design.INTERLEAVED
        clauses = [sentences.set_aside(found.metric, change, of_canary, interleaved=is_interleaved)]
    else:
        eager, compiled = context.parts_of(found.metric, found.case).values()
        who = context.who(found.metric, found.case)
        clauses = [sentences.moved(found.metric, change, who, eager=eager, compiled=compiled)]
        clauses += [sentences.RANKED] if found.ranked else []
        if of_canary is not None and not is_the_machines(context, found):
            clauses.append(sentences.falls_short(of_canary))
    return " ".join((*clauses, *_clocks(context, found)))


def _not_moved(context: Context, found: Finding) -> str:  # noqa: PLR0911
    if found.verdict is Verdict.UNCHANGED and found.identical:
        return sentences.IDENTICAL
    if found.verdict is Verdict.UNCHANGED and found.interval is not None:
        return sentences.unchanged(found.interval, found.margin)
    if min(found.trials) == 0:
        return sentences.not_testable(found.metric)
    if not found.enough_trials:
        needed = context.policy.minimum_trials
        return sentences.too_few(found.trials, needed, suspected=found.suspected)
    if found.held_back:
        return sentences.few_and_noisy(found.trials, context.policy.few_trials)
    if found.by_runs:
        return sentences.between_runs(found.visible)
    return sentences.inconclusive(
        found.interval, found.more_trials, found.unseen, context.policy.advice_effect
    )


def _clocks(context: Context, found: Finding) -> Iterator[str]:
    """What the device and the host did, where a wall time moved, and what cycles say of device time."""
    metric, case = found.metric, found.case
    if metric in (Metric.LATENCY, Metric.SPEEDUP) and context.timed_apart(case):
        device, issue = (context.clock(each, case) for each in (Metric.DEVICE_TIME, Metric.ISSUE_TIME))
        yield sentences.device_and_host(device, issue)
    cycles = context.cycles[case]
    if metric is Metric.DEVICE_TIME and math.isfinite(cycles):
        yield sentences.in_cycles(math.expm1(cycles), math.expm1(cycles - found.difference))
