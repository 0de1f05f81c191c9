"""The largest batch that fits, found by fresh processes: doubled until one does not, then halved between."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from compilewatch.db.metrics.throughput import per_second
from compilewatch.db.units import size
from compilewatch.runner.process.explanation import Fit, NoFitError

MOST = 2**24
"""No batch is larger."""
_CLOSE = 1 / 16
"""The search ends where what fits and what does not lie so close together."""


@dataclass
class Side:
    """What was tried of one strategy: by batch what a step took, or why it did not fit."""

    fits: dict[int, Fit] = field(default_factory=dict)
    fails: dict[int, str] = field(default_factory=dict)
    stopped: str | None = None
    """Why the search ended before its end."""

    @property
    def largest(self) -> int | None:
        return max(self.fits, default=None)

    def items_per_second(self, batch: int, items_per_sample: float) -> float:
        """Throughput at a batch that fits."""
        return per_second(batch * items_per_sample, self.fits[batch].latency_ns)

    def predicted_bytes(self, batch: int) -> int | None:
        """The peak that the two largest batches lead to expect; None of fewer."""
        known = sorted(
            (each, fit.peak_bytes) for each, fit in self.fits.items() if fit.peak_bytes is not None
        )
        if len(known) < 2:
            return None
        (first, low), (second, high) = known[-2:]
        return round(high + (batch - second) * max(0, high - low) / (second - first))


def search(
    attempt: Callable[[int], Fit],
    first: int,
    *,
    until_s: float,
    available_bytes: int | None,
    clock: Callable[[], float] = time.monotonic,
) -> Side:
    """Try batches from `first` on, until the largest that fits is known within a sixteenth, or `until_s` of
    `clock`. A batch whose predicted peak is above `available_bytes` counts as too large without being tried:
    a process that takes all memory of a host takes others with it.

    `attempt` raises NoFitError where memory does not suffice; whatever else it raises ends the search.
    """
    side, batch = Side(), first
    while batch <= MOST:
        if side.fits and clock() >= until_s:
            side.stopped = "time"
            break
        _try(side, batch, attempt, available_bytes)
        smallest = min(side.fails, default=None)
        largest = side.largest
        if largest is None:
            if batch == 1:
                break
            batch = max(1, batch // 2)
        elif smallest is None:
            batch *= 2
        elif smallest - largest <= max(1, largest * _CLOSE):
            break
        else:
            batch = (largest + smallest) // 2
    return side


def _try(side: Side, batch: int, attempt: Callable[[int], Fit], available_bytes: int | None) -> None:
    predicted = side.predicted_bytes(batch)
    if predicted is not None and available_bytes is not None and predicted > available_bytes:
        side.fails[batch] = f"would need {size(predicted)} of {size(available_bytes)}"
        return
    try:
        side.fits[batch] = attempt(batch)
    except NoFitError as error:
        side.fails[batch] = error.message
