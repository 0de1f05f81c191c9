"""Warm-up until steady, then samples in alternating blocks until the median is known. Knows neither torch nor
the device.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from compilewatch.runner.worker.timing.evidence import Block, BlockWatch, canary_ns
from compilewatch.runner.worker.timing.timer import BlockTimes, Timer

# How well a median is known from its own samples, without assuming how they are distributed.

_TAILS = 40
"""The interval leaves out 1/40 on either side."""


def median_rank(n: int) -> int | None:
    """The rank r, from 1, for which [x_(r), x_(n+1-r)] of n sorted samples covers the median with at least
    95 %; None below 6 samples, where no interval does.

    Each sample lies below the median with probability 1/2, so the number that do is binomial (Conover,
    Practical Nonparametric Statistics, 3.2).
    """
    below, limit = 0, 2**n // _TAILS
    for rank in range(n // 2 + 1):
        below += math.comb(n, rank)
        if below > limit:
            return rank or None
    return None


def relative_half_width(samples_ns: list[int]) -> float | None:
    """Half the width of the median's 95 % interval over the median; None where there is no interval."""
    rank = median_rank(len(samples_ns))
    if rank is None:
        return None
    ordered = sorted(samples_ns)
    width = ordered[-rank] - ordered[rank - 1]
    return width / 2 / max(1.0, statistics.median(ordered))


Step = Callable[[], Any]
Round = list[BlockTimes]
"""One block of each side."""

PAIRS = 10
"""Eager and compiled take turns at least this often: the host's speed drifts within a second."""
CHECK_GROWTH = 1.25
"""How much more there must be before the interval is looked at again: who looks after every round stops at
the first one that happens to look narrow.
"""
STEADY_RATIO = 2.0
_STEPS_AFTER = 8
"""Steps that follow a warm-up in any case: blocks of both sides, and those whose memory is read."""
_LEAST_OF_THIRD = 3
_RISE = 1.05
_WHOLE_RISE = 1.2
_ORDERED = 0.75
_CALM = 1.1
UNSTEADY_CALLS = 10
"""A slow call after this many is the host's doing: CUDA graphs record at the second and third call, automatic
dynamic shapes recompile at the first other shape, and both are over by then."""


@dataclass(frozen=True)
class SamplingPlan:
    """How many samples, in what blocks, after what warm-up. Bounds hold per side.

    At least `samples`, then more until the median's 95 % interval is within `relative_interval` of it on
    either side, `max_samples` are taken or `max_ns` is spent; after `max_ns` no fewer than `min_samples`.
    """

    samples: int = 50
    max_samples: int = 200
    relative_interval: float = 0.02
    min_samples: int = 5
    block_ns: int = 100_000_000
    settle_ns: int = 10_000_000
    max_ns: int = 20_000_000_000
    warmup_calls: int = 10
    warmup_ns: int = 500_000_000
    warmup_max_calls: int = 200
    warmup_max_ns: int = 10_000_000_000
    flush_l2: bool = True


class Deadline:
    """When the trial is ended from outside."""

    def __init__(self, at_ns: float = math.inf, *, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._at_ns = at_ns
        self._clock = clock
        self._began_ns = clock()

    def leaves(self, needed_ns: float) -> bool:
        """Whether `needed_ns` and a tenth of the whole time are left."""
        reserve = 0.0 if math.isinf(self._at_ns) else (self._at_ns - self._began_ns) / 10
        return self._at_ns - self._clock() > needed_ns + reserve


@dataclass
class Side:
    """One variant's step, its timer, its warm-up and its times, in nanoseconds, by their names in the record.

    `name` is "side" or "control", as in the record's `timing`. `compilations` counts what the compiler did in
    this process so far; `around` is entered around steps of this side.
    """

    step: Step
    timer: Timer
    name: str = "side"
    warmup_ns: list[int] = field(default_factory=list)
    times: dict[str, list[int]] = field(default_factory=dict)
    compilations: Callable[[], int] = lambda: 0
    around: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext
    compiling_calls: list[int] = field(default_factory=list)
    """The calls of the warm-up in which the compiler ran."""
    compiling_blocks_ns: list[int] = field(default_factory=list)
    """What blocks in which it ran took above their steady calls."""
    quiet_from: int = 0
    """The first call of the warm-up since which the compiler is quiet."""
    put_back: Callable[[], None] | None = None
    """Puts the state of this side back to what it was before any call; None where no call changes it."""
    most_calls: int | None = None
    """So many calls at most between two of them."""
    least_untimed: int = 0
    """Calls at least after it and before a timed one: the first few may be compiled for themselves."""
    watch: Callable[[int], None] = lambda _calls: None
    """Told of so many calls more, whenever some were made. May raise."""
    _since_put_back: int = 0

    def add(self, times: dict[str, list[int]]) -> None:
        """Take over what one block gave."""
        for name, values in times.items():
            self.times.setdefault(name, []).extend(values)

    def step_apart(self) -> Step:
        """One step that enters `around` itself, where it is called among those of the other side."""
        if self.around is contextlib.nullcontext:
            return self.step

        def step() -> Any:
            with self.around():
                return self.step()

        return step

    def quiet_ns(self) -> list[int]:
        """The calls of the warm-up after the last in which the compiler ran."""
        return self.warmup_ns[self.quiet_from :]

    def latency_ns(self) -> int:
        """What a step takes, by the second half of the calls since the compiler is quiet."""
        quiet = self.quiet_ns()
        return max(1, int(statistics.median(quiet[len(quiet) // 2 :])))

    def warm_call(self) -> None:
        """One call of the warm-up, and whether the compiler ran in it."""
        if self.put_back is not None and self._since_put_back == self.most_calls:
            self.start_over()
        before = self.compilations()
        elapsed = self.timer.once(self.step)
        self._since_put_back += 1
        self.watch(1)
        self.warmup_ns.append(elapsed)
        if self.compilations() != before:
            self.compiling_calls.append(len(self.warmup_ns) - 1)
            self.quiet_from = len(self.warmup_ns)

    def start_over(self) -> None:
        """From the state as it was before any call, where calls change it."""
        if self.put_back is not None:
            self.put_back()
        self._since_put_back = 0

    @contextlib.contextmanager
    def watched(self, calls: int) -> Iterator[None]:
        """Around `calls` steps that are not of the warm-up: where the compiler runs in them, what they took
        above the steady latency counts as one compiling call.
        """
        before, began = self.compilations(), time.perf_counter_ns()
        with self.around():
            yield
        if self.compilations() != before:
            elapsed = time.perf_counter_ns() - began - max(0, calls - 1) * self.latency_ns()
            self.compiling_blocks_ns.append(max(1, elapsed))


def is_steady(calls_ns: list[int]) -> bool:
    """Whether the median of the last third of the calls is within 10 % of the third before, or above."""
    third = len(calls_ns) // 3
    if third < 3:
        return False
    before = statistics.median(calls_ns[-2 * third : -third])
    return statistics.median(calls_ns[-third:]) >= 0.9 * before


def primary_samples(times: dict[str, list[int]]) -> list[int]:
    """The samples whose median sampling gets to know: device times where there are any, as the calmest."""
    return times.get("samples_ns") or times.get("device_ns") or times.get("wall_sync_ns", [])


class GrowsError(Exception):
    """The state of a workload grows, or its memory does, so that there is no one latency; the message says
    what and by how much.
    """


class NotSteadyError(Exception):
    """The compiler still ran when the trial's deadline was near."""

    def __init__(self, side: Side) -> None:
        calls = [side.warmup_ns[number] for number in side.compiling_calls]
        self.spent_ns = sum(calls) + sum(side.compiling_blocks_ns)
        super().__init__(
            f"The compiler ran in {len(calls)} of {len(side.warmup_ns)} calls after the first, for "
            f"{self.spent_ns / 1e9:.3g} s, until the deadline was near."
        )


def warm_up(side: Side, plan: SamplingPlan, deadline: Deadline | None = None) -> str:
    """Call until the compiler is quiet, at least `warmup_calls` and `warmup_ns` are spent since, and the
    calls are steady.

    Since the compiler is quiet it takes at most `warmup_max_calls` or `warmup_max_ns`, and three calls at
    least; near the deadline one. Returns what ended it: "steady", "calls", "time" or "deadline". Raises
    NotSteadyError where the compiler still runs when the deadline is near. Goes on where it is called again.
    """
    deadline = deadline or Deadline()
    side.quiet_from = len(side.warmup_ns)
    side.start_over()
    with side.around():
        while True:
            side.warm_call()
            quiet = side.quiet_ns()
            spent, count = sum(quiet), len(quiet)
            if count >= plan.warmup_calls and spent >= plan.warmup_ns and is_steady(quiet):
                return "steady"
            if count >= 3 and (count >= plan.warmup_max_calls or spent >= plan.warmup_max_ns):
                return "calls" if count >= plan.warmup_max_calls else "time"
            after_ns = _STEPS_AFTER * side.latency_ns() if count else 0
            if not deadline.leaves(max(2 * max(side.warmup_ns), after_ns)):
                if count >= 3 or (count and not side.compiling_calls):
                    return "deadline"
                raise NotSteadyError(side)


def until_steady(first_call_ns: int, side: Side) -> tuple[int, int]:
    """(calls, their nanoseconds) that are not steady: up to the last of the first ten that took over twice
    the steady latency, and each one after them in which the compiler ran. The first call always counts.
    """
    limit = STEADY_RATIO * side.latency_ns()
    calls = [first_call_ns, *side.warmup_ns]
    slow = [number for number, elapsed in enumerate(calls[:UNSTEADY_CALLS]) if elapsed > limit]
    count = max(slow, default=0) + 1
    later = [calls[number + 1] for number in side.compiling_calls if number + 1 >= count]
    later += side.compiling_blocks_ns
    return count + len(later), sum(calls[:count]) + sum(later)


@dataclass
class TimedBlocks:
    """Every block that was timed, how many were not counted, and why sampling ended."""

    blocks: list[Block] = field(default_factory=list)
    canaries_ns: list[int] = field(default_factory=list)
    rejected: int = 0
    ended_by: str = ""
    reached_interval: float | None = None
    held: list[tuple[int, int]] = field(default_factory=list)
    """Calls so far and what memory held, after each round."""
    calls: tuple[int, int] | None = None
    """The first and the last timed call since the state was put back, alike on both sides; None where no call
    changes it."""


class Sampler:
    """Takes samples of one or two sides in blocks, in the order A B, B A, so that a drift favours neither.

    `between_blocks` is called before the first block with "" and after each with its side's name, and says
    whether the device was slowed then; a block beside such a reading is disturbed.
    """

    def __init__(
        self,
        plan: SamplingPlan,
        *,
        cpu_bound: bool,
        between_blocks: Callable[[str], bool] = lambda _side: False,
        watch: BlockWatch | None = None,
        canary: Callable[[], int] = canary_ns,
        deadline: Deadline | None = None,
        held_bytes: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._plan = plan
        self._held_bytes = held_bytes
        self._deadline = deadline or Deadline()
        self._cpu_bound = cpu_bound
        self._between = between_blocks
        self._watch = watch or BlockWatch()
        self._canary = canary
        self._slowed = False
        self._check_at = 0.0
        self._together: int | None = None

    def block_size(self, latency_ns: int) -> int:
        """Samples per block: a share of the planned ones, and no more than fit into `block_ns`."""
        share = math.ceil(self._plan.samples / PAIRS)
        return max(1, min(share, self._plan.block_ns // latency_ns))

    def settling_calls(self, latency_ns: int) -> int:
        """Untimed steps at the start of a block. What ran between blocks, the other side or the reading of
        the device's state, leaves caches and clock in another state; `settle_ns` of own work undo it. A step
        longer than that is hardly touched, and none is spent on it.
        """
        return self._plan.settle_ns // latency_ns

    def _untimed(self, side: Side) -> int:
        """Steps before a block of `side`."""
        return self.settling_calls(side.latency_ns()) if self._together is None else self._together

    def _sizes(self, sides: list[Side]) -> list[int]:
        """Samples per block of each side. Where calls change the state of one, both are put back before each
        block and called equally often, untimed and timed, so that each is timed at the same length.
        """
        sizes = [self.block_size(side.latency_ns()) for side in sides]
        if all(side.put_back is None for side in sides):
            return sizes
        most = min((side.most_calls for side in sides if side.most_calls is not None), default=None)
        untimed = max(max(self.settling_calls(s.latency_ns()), s.least_untimed) for s in sides)
        size = min(sizes)
        if most is not None:
            size = max(1, min(size, most // 2))
            untimed = min(untimed, most - size)
        self._together = untimed
        return [size] * len(sizes)

    def take(self, sides: list[Side]) -> TimedBlocks:
        """Fill `times` of each side as the plan says.

        A round in which a block was disturbed, by the host or by the device, does not count for either side.
        Where fewer than half of the planned samples are left undisturbed, the disturbed count too and
        `rejected` says how many blocks should not have. Where the compiler ran, nothing is a sample: `times`
        stay as they were, and `ended_by` is "compiler".
        """
        evidence = TimedBlocks()
        sizes = self._sizes(sides)
        if self._together is not None:
            evidence.calls = (self._together + 1, self._together + sizes[0])
        planned = max(math.ceil(self._plan.samples / size) for size in sizes)
        undisturbed: list[Round] = []
        disturbed: list[Round] = []
        noted = sum(len(side.compiling_blocks_ns) for side in sides)
        for side, size in zip(sides, sizes, strict=True):
            side.start_over()
            with side.watched(3):
                side.timer.prepare(side.step, size, self._untimed(side))
        started = time.perf_counter_ns()
        self._slowed, self._check_at = self._between(""), 0.0
        while not evidence.ended_by:
            count = len(undisturbed) + len(disturbed)
            blocks, calm = self._round(sides, sizes, evidence, backwards=count % 2 == 1)
            if sum(len(side.compiling_blocks_ns) for side in sides) != noted:
                evidence.ended_by = "compiler"
                return evidence
            self._note_held(sides, sizes, evidence)
            evidence.rejected += 0 if calm else len(sides)
            (undisturbed if calm else disturbed).append(blocks)
            evidence.ended_by = self._end(undisturbed, disturbed, sizes, started)
        enough = len(undisturbed) * min(sizes) >= max(self._plan.min_samples, self._plan.samples // 2)
        for blocks in undisturbed if enough else (undisturbed + disturbed)[:planned]:
            for side, block in zip(sides, blocks, strict=True):
                side.add(block.times)
        evidence.reached_interval = _widest(primary_samples(side.times) for side in sides)
        if self._cpu_bound and self._together is None:
            for index, side in enumerate(sides):
                medians = [statistics.median(primary_samples(block[index].times)) for block in undisturbed]
                _refuse_rising(side, medians, evidence.canaries_ns)
        return evidence

    def _note_held(self, sides: list[Side], sizes: list[int], evidence: TimedBlocks) -> None:
        held = self._held_bytes()
        calls = sum(size + self._untimed(side) for side, size in zip(sides, sizes, strict=True))
        if held is not None:
            evidence.held.append((len(evidence.held) * calls, held))

    def _end(self, undisturbed: list[Round], disturbed: list[Round], sizes: list[int], started: int) -> str:
        """What ends the sampling now, empty when nothing does."""
        planned, most = (
            max(math.ceil(wanted / size) for size in sizes)
            for wanted in (self._plan.samples, max(self._plan.samples, self._plan.max_samples))
        )
        # A disturbed round is repeated, but no more often than there are rounds.
        attempts = len(undisturbed) + len(disturbed)
        if len(undisturbed) >= max(planned, self._check_at):
            self._check_at = CHECK_GROWTH * len(undisturbed)
            width = _widest(_primary_samples_of(undisturbed, index) for index in range(len(sizes)))
            if width is not None and width <= self._plan.relative_interval:
                return "interval"
        if self._out_of_time(undisturbed + disturbed, started, sizes):
            return "time"
        longest = max(sum(block.spent_ns for block in each) for each in undisturbed + disturbed)
        # Another round, and the steps after it.
        if not self._deadline.leaves(2 * longest):
            return "deadline"
        if len(undisturbed) >= most:
            return "samples"
        return "disturbed" if attempts >= 2 * (planned if len(undisturbed) < planned else most) else ""

    def _out_of_time(self, rounds: list[Round], started: int, sizes: list[int]) -> bool:
        """Whether, with the minimum taken, a bound is reached: a side's, or that of all work between too."""
        if len(rounds) * min(sizes) < self._plan.min_samples:
            return False
        spent = max(sum(each[index].spent_ns for each in rounds) for index in range(len(sizes)))
        overall = time.perf_counter_ns() - started
        return spent >= self._plan.max_ns or overall >= 2 * len(sizes) * self._plan.max_ns

    def _round(
        self, sides: list[Side], sizes: list[int], evidence: TimedBlocks, *, backwards: bool
    ) -> tuple[Round, bool]:
        """One block of each side, and whether all were left alone."""
        blocks: dict[int, BlockTimes] = {}
        order = range(len(sides))
        calm = True
        evidence.canaries_ns.append(self._canary())
        for index in reversed(order) if backwards else order:
            side, before = sides[index], self._slowed
            settling = self._untimed(side)
            side.start_over()
            with side.watched(settling + sizes[index]):
                for _ in range(settling):
                    side.timer.once(side.step)
                self._watch.begin()
                blocks[index] = side.timer.block(side.step, sizes[index])
                block = self._watch.end()
            side.watch(settling + sizes[index])
            self._slowed = self._between(side.name)
            evidence.blocks.append(block)
            calm = calm and block.may_count(cpu_bound=self._cpu_bound) and not (before or self._slowed)
        return [blocks[index] for index in order], calm


def _thirds(values: Sequence[float]) -> list[float]:
    """The median of each third, in order."""
    third = len(values) // 3
    return [statistics.median(values[n * third : (n + 1) * third]) for n in range(3)]


def _refuse_rising(side: Side, medians_ns: Sequence[float], canaries_ns: Sequence[int]) -> None:
    """Raises GrowsError where the medians of the blocks rise throughout, and the host did not slow down:
    something grows with the calls that cannot be seen, in C++ or in files.
    """
    if len(medians_ns) < 3 * _LEAST_OF_THIRD:
        return
    (first, middle, last), canary = _thirds(medians_ns), _thirds(canaries_ns)
    rises = min(middle / first, last / middle) > _RISE and last / first > _WHOLE_RISE
    ordered = sum(later > earlier for earlier, later in itertools.pairwise(medians_ns))
    if rises and ordered >= _ORDERED * (len(medians_ns) - 1) and max(canary) < _CALM * min(canary):
        own = "eager" if side.name == "control" else "the step"
        raise GrowsError(
            f"The latency of {own} rises with every call, from {first / 1e6:.3g} to {last / 1e6:.3g} ms on a "
            "calm host: something grows that Python does not show. Return a Built whose `reset` puts it back."
        )


def _primary_samples_of(rounds: list[Round], index: int) -> list[int]:
    """The primary samples of one side's blocks."""
    together: dict[str, list[int]] = {}
    for each in rounds:
        for name, values in each[index].times.items():
            together.setdefault(name, []).extend(values)
    return primary_samples(together)


def _widest(sides: Iterable[list[int]]) -> float | None:
    """The wider of the sides' intervals, None when one has too few samples for any."""
    widths = [relative_half_width(samples) for samples in sides]
    known = [width for width in widths if width is not None]
    return max(known) if known and len(known) == len(widths) else None
