"""Which strategy is done first: the lower envelope of total time over the number of steps.

A process that runs N steps takes compile cost + N x latency, as measured; R restarts repeat that, each start
paying its compile cost again, so that R restarts are R + 1 processes. All arithmetic is exact. Where two
strategies take equally long, the one with the lower latency is chosen: the takeover is at break-even, not one
step later.

Processes differ by more than strategies do. So each option is told on the clock of one eager
(`db.metrics.case_modes`), and eager is chosen where no strategy has paid off. An option of a single trial, a
first look, is in no ranking.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from compilewatch.db.errors import UnitError


@dataclass(frozen=True, slots=True)
class ModeOption:
    """One strategy to choose from: what a process start costs and what a step takes.

    `eager_latency_ns` is that of eager on the same clock, None for eager itself. The intervals are the 95 %
    ends of the cost and the latency, where known.
    """

    strategy: str
    compile_cost_ns: Fraction
    latency_ns: Fraction
    compile_cost_interval_ns: tuple[Fraction, Fraction] | None = None
    latency_interval_ns: tuple[Fraction, Fraction] | None = None
    eager_latency_ns: Fraction | None = None
    is_first_look: bool = False
    repays: bool = True
    """Of a compiled one: whether it is shown that it pays off, or never does."""

    def starts_cost_ns(self, restarts: int) -> Fraction:
        return (restarts + 1) * self.compile_cost_ns

    def total_ns(self, steps: int, restarts: int = 0) -> Fraction:
        """Time of restarts + 1 processes of `steps` steps each."""
        return self.starts_cost_ns(restarts) + steps * (restarts + 1) * self.latency_ns

    def eager_total_ns(self, steps: int, restarts: int = 0) -> Fraction:
        """The same of eager."""
        eager_ns = self.latency_ns if self.eager_latency_ns is None else self.eager_latency_ns
        return steps * (restarts + 1) * eager_ns

    def has_paid_off(self, steps: int, restarts: int = 0) -> bool:
        """Whether it was compiled and its total is not above eager's from here on."""
        eager = self.eager_latency_ns
        if eager is None or self.latency_ns > eager:
            return False
        return self.total_ns(steps, restarts) <= self.eager_total_ns(steps, restarts)

    def total_interval_ns(self, steps: int, restarts: int = 0) -> tuple[Fraction, Fraction] | None:
        """The ends of `total`, both low ends together and both high ends together; None where unknown. Eager,
        which the intervals of all others are against, has none of its own.
        """
        if self.eager_latency_ns is None:
            return self.total_ns(steps, restarts), self.total_ns(steps, restarts)
        if self.compile_cost_interval_ns is None or self.latency_interval_ns is None:
            return None
        low, high = (
            ModeOption(self.strategy, *end).total_ns(steps, restarts)
            for end in zip(self.compile_cost_interval_ns, self.latency_interval_ns, strict=True)
        )
        return low, high


@dataclass(frozen=True, slots=True)
class Choice:
    """The option with the lowest total, and those that its interval does not set it apart from: only without
    such `rivals` is it the best one.
    """

    option: ModeOption
    rivals: tuple[ModeOption, ...]

    @property
    def is_shown(self) -> bool:
        return not self.rivals


@dataclass(frozen=True, slots=True)
class StepRange:
    """From `first_steps` to `last_steps` (None: for ever) steps per process, `strategy` is done first.

    `total_at_first_ns` is its total time at the crossing point `first_steps`.
    """

    strategy: str
    first_steps: int
    last_steps: int | None
    total_at_first_ns: Fraction


def _check(options: Sequence[ModeOption], steps: int, restarts: int) -> None:
    if not options:
        raise UnitError("There is no strategy to choose from.", "Measure at least one.")
    if steps < 1 or restarts < 0:
        raise UnitError(f"Steps {steps:,} and restarts {restarts:,} cannot be run.", "Give at least 1 and 0.")
    for option in options:
        if option.latency_ns <= 0:
            raise UnitError(f"{option.strategy} has no latency above 0.", "Measure it again.")


def best_option(options: Sequence[ModeOption], steps: int, restarts: int = 0) -> ModeOption:
    """The option with the lowest total of those that have paid off, else of those that need not: eager.

    Among equals the lower latency, then the earlier in `options`. Raises UnitError without options, for fewer
    than 1 step or 0 restarts, or a latency that is not positive. All are of one workload and machine.
    """
    _check(options, steps, restarts)
    return _best(options, steps, restarts)


def choose(options: Sequence[ModeOption], steps: int, restarts: int = 0) -> Choice:
    """`best_option`, and what it is not set apart from. First looks alone are rivals of eager."""
    best = best_option(options, steps, restarts)
    ranked = [option for option in options if not option.is_first_look]
    others = ranked if any(option.eager_latency_ns is not None for option in ranked) else options
    ends = best.total_interval_ns(steps, restarts)

    def apart(other: ModeOption) -> bool:
        theirs = other.total_interval_ns(steps, restarts)
        return ends is not None and theirs is not None and ends[1] < theirs[0]

    return Choice(best, tuple(each for each in others if each is not best and not apart(each)))


def _best(options: Sequence[ModeOption], steps: int, restarts: int) -> ModeOption:
    options = [option for option in options if not option.is_first_look] or options
    paid_off = [option for option in options if option.has_paid_off(steps, restarts)]
    free = [option for option in options if option.eager_latency_ns is None]
    return min(
        paid_off or free or options, key=lambda each: (each.total_ns(steps, restarts), each.latency_ns)
    )


def lower_envelope(options: Sequence[ModeOption], restarts: int = 0) -> tuple[StepRange, ...]:
    """Who is done first from 1 step on, in order; each later segment begins at a crossing point.

    Raises UnitError as `best_option` does.
    """
    starts = [(1, best_option(options, 1, restarts))]
    for steps in _crossings(options, restarts):
        best = _best(options, steps, restarts)
        if best is not starts[-1][1]:
            starts.append((steps, best))
    ends = [first - 1 for first, _ in starts[1:]]
    return tuple(
        StepRange(option.strategy, first, last, option.total_ns(first, restarts))
        for (first, option), last in zip(starts, [*ends, None], strict=True)
    )


def shown_envelope(options: Sequence[ModeOption], restarts: int = 0) -> tuple[StepRange, ...]:
    """`lower_envelope` without a takeover by a strategy that is not shown to be below the one before: by its
    break-even where that is eager, else by the intervals of both steps. Raises UnitError as `best_option`.
    """
    by_name = {option.strategy: option for option in options}
    left = list(options)
    while True:
        segments = lower_envelope(left, restarts)
        pairs = ((by_name[one.strategy], by_name[other.strategy]) for one, other in pairwise(segments))
        unshown = next((after for before, after in pairs if not _is_below(after, before)), None)
        if unshown is None:
            return segments
        left.remove(unshown)


def _is_below(option: ModeOption, before: ModeOption) -> bool:
    if before.eager_latency_ns is None:
        return option.repays
    ours, theirs = option.latency_interval_ns, before.latency_interval_ns
    return ours is not None and theirs is not None and ours[1] < theirs[0]


def _crossings(options: Sequence[ModeOption], restarts: int) -> list[int]:
    """The numbers of steps above 1, ascending, from which on an option is not above another one with a higher
    latency, or not above eager in its own process.
    """
    crossings = set()
    for option in options:
        if option.is_first_look:
            continue
        cost = option.starts_cost_ns(restarts)
        above = [(other.starts_cost_ns(restarts), other.latency_ns) for other in options]
        if option.eager_latency_ns is not None:
            above.append((Fraction(0), option.eager_latency_ns))
        for other_cost, other_latency in above:
            saved = (other_latency - option.latency_ns) * (restarts + 1)
            if saved > 0:
                crossings.add(math.ceil((cost - other_cost) / saved))
    return sorted(steps for steps in crossings if steps > 1)
