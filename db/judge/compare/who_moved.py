"""Whose latency moved, eager's or the compiled one's, the host's part or the device's, and the cause class.

log(head speedup / base speedup) = log(eager change) - log(compiled change), exactly. Each part has its own
moderated t-test; the canary says how far the machine moved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compilewatch.db.columns.metrics import ASKED_METRICS
from compilewatch.db.judge.decide import Decision, Evidence
from compilewatch.db.judge.results import Clock
from compilewatch.db.metrics.groups import Bools, Floats
from compilewatch.db.records.vocabulary import Bound, CauseClass, Metric, WhoMoved

_MOVED = {
    (True, True): WhoMoved.BOTH,
    (True, False): WhoMoved.EAGER,
    (False, True): WhoMoved.COMPILED,
    (False, False): WhoMoved.UNCLEAR,
}
"""By whether eager and whether the compiled one moved."""


@dataclass(frozen=True)
class Moves:
    """Per case: log latency change of eager and of compiled, in the same processes, and whether each moved
    by more than its own noise and the minimum effect.
    """

    eager: Floats
    compiled: Floats
    eager_moved: Bools
    compiled_moved: Bools

    @classmethod
    def of(cls, eager: tuple[Evidence, Decision], compiled: tuple[Evidence, Decision]) -> Moves:
        """From the test of each part over the same cases."""
        differences = (eager[0].test.difference, compiled[0].test.difference)
        return cls(*differences, eager[1].changed, compiled[1].changed)

    @cached_property
    def who(self) -> list[WhoMoved | None]:
        """Per case; None where eager was not measured beside compiled."""
        measured = np.isfinite(self.eager) & np.isfinite(self.compiled)
        flags = (measured, self.eager_moved, self.compiled_moved)
        return [
            _MOVED[eager, compiled] if both else None
            for both, eager, compiled in zip(*(each.tolist() for each in flags), strict=True)
        ]

    @cached_property
    def changes(self) -> tuple[list[float | None], list[float | None]]:
        """Relative ones of eager and of compiled, per case."""
        eager, compiled = ([*map(relative, each.tolist())] for each in (self.eager, self.compiled))
        return eager, compiled


def relative(difference: float) -> float | None:
    """A log ratio as a relative change."""
    return math.expm1(difference) if math.isfinite(difference) else None


TIMES = (
    *(Metric.LATENCY, Metric.SPEEDUP, Metric.COMPILE_COST, Metric.BREAK_EVEN),
    *(Metric.DEVICE_TIME, Metric.ISSUE_TIME, Metric.DEVICE_SPEEDUP),
    *ASKED_METRICS,
)
"""What a machine can change."""
_RATIOS = (Metric.SPEEDUP, Metric.BREAK_EVEN, Metric.DEVICE_SPEEDUP)
_ON_WALL = (Metric.LATENCY, Metric.SPEEDUP, Metric.BREAK_EVEN)


def moved_on(change: float, device: Clock, issue: Clock, bound: Bound | None) -> Bound | None:
    """Where a log change of the latency of one case comes from; None where nobody can say.

    Where device and host both moved with it, from the one that the case waits for.
    """
    if device.moved_with(change) and issue.moved_with(change):
        return bound or (Bound.HOST if abs(issue.change) > abs(device.change) else Bound.DEVICE)
    if device.moved_with(change):
        return Bound.DEVICE
    if issue.moved_with(change) or device.same or bound is Bound.HOST:
        return Bound.HOST
    return None


_AS_MUCH = 1.25
"""A case may feel what happens to a machine by a quarter more than its canaries do."""


def machine_explains(slowdown: float, canary: float, reach: float) -> bool:
    """Whether the machine did all of a change: the canary moved the same way and as much, but for `reach`,
    within which the change is not known, or half of it.

    `slowdown`, `canary`: log changes, positive for worse.
    """
    left = abs(slowdown) - _AS_MUCH * abs(canary)
    return canary * slowdown > 0 and left <= min(reach, abs(slowdown) / 2)


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
    if metric in _RATIOS:
        compiled = CauseClass.COMPILER if who in (WhoMoved.COMPILED, WhoMoved.BOTH) else None
        cause = CauseClass.EAGER if eager_case or who is WhoMoved.EAGER else compiled
    else:
        shared = metric in (Metric.LATENCY, Metric.DEVICE_TIME) and who is WhoMoved.BOTH
        cause = CauseClass.EAGER if eager_case or shared else CauseClass.COMPILER
    by_eager_alone = metric in _RATIOS and who is WhoMoved.EAGER
    if timed_apart and metric in _ON_WALL and not by_eager_alone and on is not Bound.DEVICE:
        # Of the wall time of a step it is not the code that changed, or nobody can say that it is.
        return CauseClass.HOST if on is Bound.HOST and cause is not None else None
    return cause
