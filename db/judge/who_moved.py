"""Whose latency moved, eager's or the compiled one's, and on which clock, the host's or the device's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compilewatch.db.metrics.groups import Bools, Floats
from compilewatch.db.records.vocabulary import Bound, WhoMoved


@dataclass(frozen=True)
class Moves:
    """Per case: log latency change of eager and of compiled, in the same processes, and whether each moved
    by more than its own noise and the minimum effect. Each part has its own test, and
    log(head speedup / base speedup) = log(eager change) - log(compiled change), exactly.
    """

    eager: Floats
    compiled: Floats
    eager_moved: Bools
    compiled_moved: Bools

    @cached_property
    def who(self) -> list[WhoMoved | None]:
        """Per case; None where eager was not measured beside compiled."""
        measured = np.isfinite(self.eager) & np.isfinite(self.compiled)
        flags = (measured, self.eager_moved, self.compiled_moved)
        return [
            _WHO_MOVED[eager, compiled] if both else None
            for both, eager, compiled in zip(*(each.tolist() for each in flags), strict=True)
        ]

    @cached_property
    def changes(self) -> tuple[list[float | None], list[float | None]]:
        """Relative ones of eager and of compiled, per case."""
        eager, compiled = ([*map(relative, each.tolist())] for each in (self.eager, self.compiled))
        return eager, compiled


_WHO_MOVED = {
    (True, True): WhoMoved.BOTH,
    (True, False): WhoMoved.EAGER,
    (False, True): WhoMoved.COMPILED,
    (False, False): WhoMoved.UNCLEAR,
}
"""By whether eager and whether the compiled one moved."""


def relative(difference: float) -> float | None:
    """A log ratio as a relative change."""
    return math.expm1(difference) if math.isfinite(difference) else None


@dataclass(frozen=True)
class Clock:
    """What one clock says of one case: the log change, whether it is a sure one, and whether the case is
    shown to be unchanged on it.
    """

    change: float
    moved: bool
    same: bool

    def moved_with(self, change: float) -> bool:
        """Whether it surely moved, the same way as `change`."""
        return self.moved and self.change * change > 0


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
