"""Whose latency moved, eager's or the compiled one's, and the cause class that follows.

log(head speedup / base speedup) = log(eager change) - log(compiled change), exactly. Each part has its own
moderated t-test; the canary says whether the machine moved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from db.metrics.groups import Bools, Floats
from db.verdicts.judgement import Judged, Tested
from db.verdicts.policy import Policy
from db.verdicts.vocabulary import CauseClass, Metric, WhoMoved

_MOVED = {
    (True, True): WhoMoved.BOTH,
    (True, False): WhoMoved.EAGER,
    (False, True): WhoMoved.COMPILED,
    (False, False): WhoMoved.UNCLEAR,
}
"""By whether eager and whether the compiled one moved."""


@dataclass(frozen=True)
class Parts:
    """Per case: log latency change of eager and of compiled, in the same processes, and whether each moved
    by more than its own noise and the minimum effect.
    """

    eager: Floats
    compiled: Floats
    eager_moved: Bools
    compiled_moved: Bools

    @classmethod
    def of(cls, eager: tuple[Tested, Judged], compiled: tuple[Tested, Judged]) -> Parts:
        """From the test of each part over the same cases."""

        def moved(judged: Judged) -> Bools:
            return judged.grew | judged.shrank

        return cls(eager[0].test.difference, compiled[0].test.difference, moved(eager[1]), moved(compiled[1]))

    def who(self) -> list[WhoMoved | None]:
        """Per case; None where eager was not measured beside compiled."""
        measured = np.isfinite(self.eager) & np.isfinite(self.compiled)
        flags = (measured, self.eager_moved, self.compiled_moved)
        return [
            _MOVED[eager, compiled] if both else None
            for both, eager, compiled in zip(*(each.tolist() for each in flags), strict=True)
        ]


def canary_change(differences: Floats) -> float | None:
    """Median log latency change of the canary's cases; None without a canary."""
    known = differences[np.isfinite(differences)]
    return float(np.median(known)) if len(known) else None


def machine_explains(slowdown: float, canary: float | None, policy: Policy) -> bool:
    """`slowdown`: log change, positive for worse. True when the canary moved by the same sign and at least
    `policy.canary_share` of the size.
    """
    if canary is None or slowdown == 0.0:
        return False
    return canary * slowdown > 0 and abs(canary) >= policy.canary_share * abs(slowdown)


def cause_of(
    metric: Metric,
    slowdown: float,
    who: WhoMoved | None,
    *,
    eager_case: bool,
    canary: float | None,
    interleaved: bool,
    same_build: bool,
    policy: Policy,
) -> CauseClass | None:
    """Cause class of a regressed or improved row; None where the parts cannot be told apart.

    Eager and compiled moving together is `eager`: what they share moved (a library, a kernel), not the
    compiler. With the same build on both sides only the machine is left. Where the sides took turns, what the
    machine did is in both, and a canary that differs says that its own code (torch's launches and copies)
    does.
    """
    timed = metric in (Metric.LATENCY, Metric.SPEEDUP, Metric.COMPILE_COST, Metric.BREAK_EVEN)
    if timed and (same_build or (not interleaved and machine_explains(slowdown, canary, policy))):
        return CauseClass.MACHINE
    if eager_case:
        return CauseClass.EAGER
    if metric is Metric.LATENCY:
        return CauseClass.EAGER if who is WhoMoved.BOTH else CauseClass.COMPILER
    if metric in (Metric.SPEEDUP, Metric.BREAK_EVEN):
        return _of_ratio(who)
    return CauseClass.COMPILER


def _of_ratio(who: WhoMoved | None) -> CauseClass | None:
    if who is WhoMoved.EAGER:
        return CauseClass.EAGER
    return CauseClass.COMPILER if who in (WhoMoved.COMPILED, WhoMoved.BOTH) else None
