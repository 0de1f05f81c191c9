"""Warm-up until steady, then samples in alternating blocks. Knows neither torch nor the device."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from runner.worker.evidence import Block, BlockWatch, canary_ns

Step = Callable[[], Any]

PAIRS = 10
"""Eager and compiled take turns at least this often: the host's speed drifts within a second."""
STEADY_RATIO = 2.0
UNSTEADY_CALLS = 10
"""A slow call after this many is the host's doing: CUDA graphs record at the second and third call, automatic
dynamic shapes recompile at the first other shape, and both are over by then."""


class Timer(Protocol):
    def time_steps(self, step: Step, count: int) -> list[int]: ...

    def once(self, step: Step) -> int: ...


@dataclass(frozen=True)
class SamplingPlan:
    """How many samples, in what blocks, after what warm-up. Bounds hold per side."""

    samples: int = 50
    min_samples: int = 5
    block_ns: int = 100_000_000
    max_ns: int = 20_000_000_000
    warmup_calls: int = 10
    warmup_ns: int = 500_000_000
    warmup_max_calls: int = 200
    warmup_max_ns: int = 10_000_000_000
    flush_l2: bool = True

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> SamplingPlan:
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in spec.items() if name in known})


@dataclass
class Side:
    """One variant's step, its warm-up and its samples, in nanoseconds."""

    step: Step
    warmup_ns: list[int] = field(default_factory=list)
    samples_ns: list[int] = field(default_factory=list)

    def latency_ns(self) -> int:
        """What a step takes, by the second half of the warm-up."""
        later = self.warmup_ns[len(self.warmup_ns) // 2 :]
        return max(1, int(statistics.median(later)))


def is_steady(calls_ns: list[int]) -> bool:
    """Whether the median of the last third of the calls is within 10 % of the third before, or above."""
    third = len(calls_ns) // 3
    if third < 3:
        return False
    before = statistics.median(calls_ns[-2 * third : -third])
    return statistics.median(calls_ns[-third:]) >= 0.9 * before


def warm_up(side: Side, timer: Timer, plan: SamplingPlan) -> None:
    """Call until at least `warmup_calls` and `warmup_ns` are spent and the calls are steady.

    Ends in any case at `warmup_max_calls` or `warmup_max_ns`, after three calls at least.
    """
    spent = 0
    while True:
        took = timer.once(side.step)
        side.warmup_ns.append(took)
        spent += took
        count = len(side.warmup_ns)
        if count >= 3 and (count >= plan.warmup_max_calls or spent >= plan.warmup_max_ns):
            return
        if count >= plan.warmup_calls and spent >= plan.warmup_ns and is_steady(side.warmup_ns):
            return


def until_steady(first_call_ns: int, warmup_ns: list[int]) -> tuple[int, int]:
    """(calls, their nanoseconds) before steady state: up to the last of the first ten that took over twice
    the steady latency. The first call always counts as one.
    """
    steady = statistics.median(warmup_ns[len(warmup_ns) // 2 :])
    calls = [first_call_ns, *warmup_ns][:UNSTEADY_CALLS]
    slow = [index for index, took in enumerate(calls) if took > STEADY_RATIO * steady]
    count = max(slow, default=0) + 1
    return count, sum(calls[:count])


@dataclass
class Evidence:
    """Every block that was timed, and how many were not counted."""

    blocks: list[Block] = field(default_factory=list)
    canaries_ns: list[int] = field(default_factory=list)
    rejected: int = 0


class Sampler:
    """Takes samples of one or two sides in blocks, in the order A B, B A, so that a drift favours neither."""

    def __init__(
        self,
        timer: Timer,
        plan: SamplingPlan,
        *,
        cpu_bound: bool,
        between_blocks: Callable[[], None] = lambda: None,
        watch: BlockWatch | None = None,
        canary: Callable[[], int] = canary_ns,
    ) -> None:
        self._timer = timer
        self._plan = plan
        self._cpu_bound = cpu_bound
        self._between = between_blocks
        self._watch = watch or BlockWatch()
        self._canary = canary

    def block_size(self, latency_ns: int) -> int:
        """Samples per block: a share of the planned ones, and no more than fit into `block_ns`."""
        share = math.ceil(self._plan.samples / PAIRS)
        return max(1, min(share, self._plan.block_ns // latency_ns))

    def take(self, sides: list[Side]) -> Evidence:
        """Fill `samples_ns` of each side until both have `samples`, or `max_ns` is spent on one.

        A round in which the host disturbed a block does not count for either side. Where fewer than half of
        the planned samples are left undisturbed, the disturbed count too and `rejected` says how many blocks
        should not have.
        """
        evidence = Evidence()
        sizes = [self.block_size(side.latency_ns()) for side in sides]
        rounds = max(math.ceil(self._plan.samples / size) for size in sizes)
        kept: list[list[list[int]]] = []
        disturbed: list[list[list[int]]] = []
        spent = [0 for _ in sides]
        started = time.perf_counter_ns()
        # A disturbed round is repeated, but no more often than there are rounds.
        for number in range(2 * rounds):
            if len(kept) >= rounds:
                break
            if self._out_of_time(spent, started, len(kept) + len(disturbed), sizes):
                break
            blocks = self._round(sides, sizes, evidence, backwards=number % 2 == 1)
            spent = [total + sum(block) for total, block in zip(spent, blocks, strict=True)]
            judged = evidence.blocks[-len(sides) :]
            calm = all(block.may_count(cpu_bound=self._cpu_bound) for block in judged)
            evidence.rejected += 0 if calm else len(sides)
            (kept if calm else disturbed).append(blocks)
        enough = len(kept) * min(sizes) >= max(self._plan.min_samples, self._plan.samples // 2)
        for blocks in kept if enough else (kept + disturbed)[:rounds]:
            for side, block in zip(sides, blocks, strict=True):
                side.samples_ns += block
        return evidence

    def _out_of_time(self, spent: list[int], started: int, rounds: int, sizes: list[int]) -> bool:
        """Whether, with the minimum taken, a bound is reached: a side's, or that of all work between too."""
        if rounds * min(sizes) < self._plan.min_samples:
            return False
        overall = time.perf_counter_ns() - started
        return max(spent) >= self._plan.max_ns or overall >= 2 * len(spent) * self._plan.max_ns

    def _round(
        self, sides: list[Side], sizes: list[int], evidence: Evidence, *, backwards: bool
    ) -> list[list[int]]:
        """One block of each side."""
        blocks: list[list[int]] = [[] for _ in sides]
        order = range(len(sides))
        evidence.canaries_ns.append(self._canary())
        for index in reversed(order) if backwards else order:
            self._between()
            self._watch.begin()
            blocks[index] = self._timer.time_steps(sides[index].step, sizes[index])
            evidence.blocks.append(self._watch.end())
        return blocks
