"""What makes one series worse or better through time, and what stands at its end: every rule, from the top.

1. A step that the points show is worse or better by its sign (`decide_step`). Where a series steps is
   statistics: `db.judge.change_points`.
2. A drift is what is left beyond all steps, real by its p and its size (`decide_drift`).
3. What a canary's step explains is the machine's (`is_explained_step`).
4. At its end a series is worse where its last step, its drift or its last release made it so (`decide_end`);
   a machine where that of any series did (`is_worse_at_last`).

A release, or the newest of too few runs, is judged as a comparison of two sides: `db.judge.decide`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compilewatch.db.judge.decide import MOVED, TIMES, direction, machine_explains, overall_verdict
from compilewatch.db.judge.policy import HistoryPolicy, Policy
from compilewatch.db.records.vocabulary import Metric, Verdict

if TYPE_CHECKING:
    from compilewatch.db.judge.results import ChangeEvent, Row


def decide_step(metric: Metric, difference: float, *, flips: bool = False) -> Verdict:
    """What a step that the points show means: worse or better, and neither where the series flips back to one
    of two modes (`db.judge.modes`).
    """
    return Verdict.INCONCLUSIVE if flips else direction(metric, difference)


def decide_drift(metric: Metric, slow: float, half: float, p_value: float, policy: Policy) -> Verdict:
    """What is left of a log change beyond all steps, `slow` with an interval of `half` to each side: real by
    its p and its size, unchanged where the interval lies within the margin.
    """
    rules = policy.history
    if p_value <= rules.p_value and abs(slow) >= math.log1p(rules.minimum_effect):
        return direction(metric, slow)
    is_within = abs(slow) + half <= math.log1p(policy.thresholds[metric].unchanged_margin)
    return Verdict.UNCHANGED if is_within else Verdict.INCONCLUSIVE


def is_explained_step(event: ChangeEvent, canary: float, rules: HistoryPolicy) -> bool:
    """Whether the largest log step of the canaries at that time explains this one (`machine_explains`), but
    for half its interval, or the smallest step that is announced.
    """
    step = abs(event.log_step)
    half = 0.0 if event.interval is None else math.log1p(event.interval[1]) - event.log_step
    reach = max(half, math.log1p(rules.minimum_effect))
    return event.metric in TIMES and machine_explains(step, canary, reach)


def standing_change(events: Iterable[ChangeEvent]) -> ChangeEvent | None:
    """The last change that made the series better or worse; flips between two modes are neither."""
    sure = [event for event in events if event.verdict in MOVED]
    return max(sure, key=lambda event: event.index, default=None)


@dataclass(frozen=True)
class End:
    """What is known at the end of a series: the `events` of its last stretch and its `drift`, the verdicts on
    its last `release` and on the `newest` run against the one before, the number of `runs` in time. Where
    `by_release`, builds took turns and there are too few other runs.
    """

    events: Sequence[ChangeEvent]
    drift: Verdict | None
    release: Row | None
    newest: Row | None
    runs: int
    by_release: bool


def decide_end(end: End, policy: Policy) -> Verdict:
    """What stands at the end of a series: of builds that took turns what the last release is; of too few runs
    what the newest is; else regressed where the last change, the drift or the last release is one, and
    unchanged without.
    """
    if end.by_release and end.release is not None:
        return end.release.verdict
    if end.runs < policy.history.fewest_runs:
        return Verdict.INCONCLUSIVE if end.newest is None else overall_verdict([end.newest], policy)
    last = standing_change(end.events)
    ends = (last and last.verdict, end.drift, end.release and end.release.verdict)
    return Verdict.REGRESSED if Verdict.REGRESSED in ends else Verdict.UNCHANGED


def as_direction(event: ChangeEvent) -> Verdict:
    """Which way an event goes: a case that is missing is worse."""
    return Verdict.REGRESSED if event.verdict is Verdict.MISSING else event.verdict


def is_worse_at_last(events: Iterable[ChangeEvent]) -> bool:
    """Whether the last of `events`, oldest first, is worse in any series and metric."""
    last = {(event.series_id, event.metric): as_direction(event) for event in events}
    return Verdict.REGRESSED in last.values()
