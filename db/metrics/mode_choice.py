"""Which strategy is done first: the lower envelope of total time over the number of steps.

A process that runs N steps takes compile cost + N x latency; R restarts repeat that, each start paying its
compile cost again, so that R restarts are R + 1 processes. All arithmetic is exact. Where two strategies take
equally long, the one with the lower latency is chosen: the takeover is at break-even, not one step later.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from db.errors import UnitError
from db.metrics.quantities import Quantity


@dataclass(frozen=True, slots=True)
class ModeOption:
    """One strategy to choose from: what a process start costs and what a step takes.

    `restart_cost` is what a later start pays where that is less than the first (caches left on disk). The
    intervals are the 95 % ends of the cost and the latency, where known.
    """

    strategy: str
    compile_cost: Quantity
    latency: Quantity
    restart_cost: Quantity | None = None
    compile_cost_interval: tuple[Quantity, Quantity] | None = None
    latency_interval: tuple[Quantity, Quantity] | None = None

    def starts_cost(self, restarts: int) -> Quantity:
        """Compile cost of the first start and of `restarts` later ones."""
        again = self.compile_cost if self.restart_cost is None else self.restart_cost
        return self.compile_cost + restarts * again

    def total(self, steps: int, restarts: int = 0) -> Quantity:
        """Time of restarts + 1 processes of `steps` steps each."""
        return self.starts_cost(restarts) + steps * (restarts + 1) * self.latency


@dataclass(frozen=True, slots=True)
class Segment:
    """From `first_steps` to `last_steps` (None: for ever) steps per process, `strategy` is done first.

    `total_at_first` is its total time at the crossing point `first_steps`.
    """

    strategy: str
    first_steps: int
    last_steps: int | None
    total_at_first: Quantity


def _check(options: Sequence[ModeOption], steps: int, restarts: int) -> None:
    if not options:
        raise UnitError("There is no strategy to choose from.", "Measure at least one.")
    if steps < 1 or restarts < 0:
        raise UnitError(f"Steps {steps:,} and restarts {restarts:,} cannot be run.", "Give at least 1 and 0.")
    for option in options:
        if option.latency.value <= 0:
            raise UnitError(f"{option.strategy} has no latency above 0.", "Measure it again.")
        # raises for another unit, workload or machine
        option.total(1, restarts) - options[0].total(1, restarts)


def _rank(option: ModeOption, steps: int, restarts: int) -> tuple[Fraction, Fraction]:
    return option.total(steps, restarts).value, option.latency.value


def best_option(options: Sequence[ModeOption], steps: int, restarts: int = 0) -> ModeOption:
    """The option with the lowest total; among equals the lower latency, then the earlier in `options`.

    Raises UnitError without options, for fewer than 1 step or 0 restarts, a latency that is not positive, or
    options of different workloads, machines or units.
    """
    _check(options, steps, restarts)
    return min(options, key=lambda option: _rank(option, steps, restarts))


def lower_envelope(options: Sequence[ModeOption], restarts: int = 0) -> tuple[Segment, ...]:
    """Who is done first from 1 step on, in order; each later segment begins at a crossing point.

    Raises UnitError as `best_option` does.
    """
    segments: list[Segment] = []
    steps: int | None = 1
    current = best_option(options, 1, restarts)
    while steps is not None:
        following = _next_crossing(options, current, restarts)
        last = None if following is None else following - 1
        segments.append(Segment(current.strategy, steps, last, current.total(steps, restarts)))
        steps = following
        if following is not None:
            current = best_option(options, following, restarts)
    return tuple(segments)


def _next_crossing(options: Sequence[ModeOption], current: ModeOption, restarts: int) -> int | None:
    """The first number of steps at which an option with a lower latency is not above `current`."""
    crossings = []
    for other in options:
        saved = (current.latency - other.latency).value * (restarts + 1)
        if saved > 0:
            dearer = other.starts_cost(restarts) - current.starts_cost(restarts)
            crossings.append(math.ceil(dearer.value / saved))
    return min(crossings, default=None)
