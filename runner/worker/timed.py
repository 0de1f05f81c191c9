"""The timed part: both sides until they are steady, then samples in alternating blocks; on a GPU energy and
traced steps after them.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from compilewatch.runner.worker.cold_start import Started
from compilewatch.runner.worker.compiler import knobs
from compilewatch.runner.worker.device.timers import Timers
from compilewatch.runner.worker.progress import Progress
from compilewatch.runner.worker.step import host, memory
from compilewatch.runner.worker.step.growth import Found
from compilewatch.runner.worker.step.host import compile_pool
from compilewatch.runner.worker.step.internals import end_compile_pool, force_eager, without_telling_guards
from compilewatch.runner.worker.step.steps import grad_context
from compilewatch.runner.worker.timing.evidence import host_state
from compilewatch.runner.worker.timing.sampling import (
    UNSTEADY_CALLS,
    NotSteadyError,
    Sampler,
    Side,
    TimedBlocks,
    until_steady,
    warm_up,
)
from compilewatch.runner.worker.timing.timer import SideTimes, headline_of
from compilewatch.runner.workloads.built import Built

WINDOW_NS = 1_000_000_000
"""The counter moves some ten times a second, so that a window of a second is right to a few percent."""
_FEWEST = 3


def run_window(
    step: Callable[[], Any],
    synchronize: Callable[[], None],
    announce: Callable[[int], None],
    latency_ns: int,
) -> None:
    """Run steps of `latency_ns` for about `WINDOW_NS`, with nothing between them.

    `announce` is called with 0 before the first and with their number after the last, while the device has
    nothing to do.
    """
    steps = max(_FEWEST, math.ceil(WINDOW_NS / max(1, latency_ns)))
    step()
    synchronize()
    announce(0)
    for _ in range(steps):
        step()
    synchronize()
    announce(steps)


# How long the compiler's processes may take to end: one that still imports torch ends afterwards.
_POOL_ENDS_S = 30.0
_MOST_NAMED = 3


@dataclass(frozen=True)
class Sides:
    """What is timed: `own`, of the strategy, and beside a compiled one eager as its control."""

    own: Side
    control: Side | None

    @property
    def in_order(self) -> list[Side]:
        """As the blocks of the first round follow each other."""
        return [self.own] if self.control is None else [self.control, self.own]


@dataclass(frozen=True)
class Timed:
    """Both sides with their times, and what else is known by then."""

    sides: Sides
    headline: str
    """The times that are the latency."""
    cudagraph_launches: int | None
    growth: float | None
    """Bytes by which memory grows with each call, as `growth_per_call`."""
    untimed_calls: int
    """Before the first timed one since the state was put back; 0 where no call changes it."""


def time_sides(progress: Progress, timers: Timers, cores: host.Cores, started: Started) -> Timed:
    """Warm up, sample, keep the times. Raises NotSteadyError."""
    sides = _sides(progress, timers, started)
    evidence = _sample(progress, sides, started, cores)
    with host.running_on(cores.timed_on):
        headline, cudagraph_launches = _keep_times(progress, timers, sides, started.subject.built)
    # What the tensors of the state say is exact; what the process has resident is more, or less.
    growth = progress.found.bytes_per_call or memory.growth_per_call(evidence.held)
    untimed = evidence.calls[0] - 1 if evidence.calls is not None else 0
    return Timed(sides, headline, cudagraph_launches, growth, untimed)


def _sides(progress: Progress, timers: Timers, started: Started) -> Sides:
    eager, found = started.eager, progress.found
    own = Side(started.subject.step, timers.side(), compilations=eager.compilations)
    own.put_back = progress.put_back(started.subject.built, progress.states[-1])
    own.most_calls = found.most_calls
    own.least_untimed = UNSTEADY_CALLS if found.of_python else 0
    own.watch = memory.Watch(progress.device).add
    if started.compiled is None:
        own.around = force_eager
        return Sides(own, None)
    control = Side(eager.control.step, timers.side(), "control", compilations=eager.compilations)
    control.put_back = progress.put_back(eager.control.built, progress.states[0])
    control.most_calls, control.watch = found.most_calls, own.watch
    control.around = force_eager
    return Sides(own, control)


def _sample(progress: Progress, sides: Sides, started: Started, cores: host.Cores) -> TimedBlocks:
    """Eager and compiled in alternating blocks. Where the compiler runs again meanwhile, it was not steady:
    it is warmed up once more and nothing of before is kept.
    """
    plan, record, on_cpu = progress.spec.sampling, progress.record, progress.device.type == "cpu"
    between = progress.channel.pause if progress.spec.device_state else lambda _side: False
    while True:
        warmup_ended_by = _warm_up(progress, sides, started)
        progress.enter("sampling")
        pool_ended = _end_pool()
        sampler = Sampler(
            plan,
            cpu_bound=on_cpu,
            between_blocks=between,
            deadline=progress.deadline,
            held_bytes=partial(memory.held_bytes, progress.device),
        )
        with grad_context(started.subject.built), host.running_on(cores.timed_on):
            evidence = sampler.take(sides.in_order)
        if evidence.ended_by != "compiler":
            break
    first_ns = record.cold_start["eager_first_ns" if progress.is_eager else "first_call_ns"]
    calls, spent = until_steady(first_ns, sides.own)
    record.cold_start |= {"calls_until_steady": calls, "until_steady_ns": spent}
    record.host_state = host_state(evidence.blocks, evidence.rejected, evidence.canaries_ns)
    record.host_state["compile_pool_ended"] = pool_ended
    if not on_cpu:
        record.host_state |= _host_of_gpu(cores)
    record.warmup_ns = sides.own.warmup_ns
    record.sampling = _sampling_facts(progress, sides, evidence, warmup_ended_by)
    if sides.control is not None:
        record.control_warmup_ns = sides.control.warmup_ns
    return evidence


def _warm_up(progress: Progress, sides: Sides, started: Started) -> str:
    """The compiled side first, as its cold start goes on. Returns what ended its warm-up."""
    progress.enter("warmup")
    plan, record = progress.spec.sampling, progress.record
    with grad_context(started.subject.built):
        try:
            ended_by = warm_up(sides.own, plan, progress.deadline)
            if sides.control is not None:
                warm_up(sides.control, plan, progress.deadline)
                if knobs.skips_guards(progress.spec.strategy.options):
                    sides.own.around = without_telling_guards
        except NotSteadyError:
            record.warmup_ns = sides.own.warmup_ns
            record.compiler = started.compiler_facts()
            raise
    return ended_by


def _sampling_facts(
    progress: Progress, sides: Sides, evidence: TimedBlocks, warmup_ended_by: str
) -> dict[str, Any]:
    plan = progress.spec.sampling
    return {
        "samples": plan.samples,
        "max_samples": plan.max_samples,
        "relative_interval": plan.relative_interval,
        "reached_interval": evidence.reached_interval,
        "ended_by": evidence.ended_by,
        "warmup_ended_by": warmup_ended_by,
        "flush_l2": None if progress.device.type == "cpu" else plan.flush_l2,
        "block_ns": plan.block_ns,
        "settle_ns": plan.settle_ns,
        "order": "A" if sides.control is None else "ABBA",
        "garbage_collector": gc.isenabled(),
        "state": None if evidence.calls is None else _timed_state(progress.found, *evidence.calls),
    }


def _timed_state(found: Found, first: int, last: int) -> dict[str, Any]:
    """`TimedState` of the record."""
    growth = found.growth
    return {
        "name": growth.name if growth is not None else ", ".join(found.changes[:_MOST_NAMED]) or None,
        "first_call": first,
        "last_call": last,
        "first_length": None if growth is None else growth.at(first),
        "last_length": None if growth is None else growth.at(last),
        "unit": None if growth is None else growth.unit,
        "fails_at": found.fails_at,
    }


def _end_pool() -> bool | None:
    """Whether the compiler's processes, which would run beside the samples, are gone; None where there were
    none.
    """
    if not compile_pool():
        return None
    end_compile_pool()
    ends = time.monotonic() + _POOL_ENDS_S
    while (is_left := bool(compile_pool())) and time.monotonic() < ends:
        time.sleep(0.02)
    return not is_left


def _host_of_gpu(cores: host.Cores) -> dict[str, Any]:
    """Where the thread that feeds the GPU runs: issue time differs between processes, often in two modes,
    and these are what is suspected.
    """
    cpu = cores.launching
    siblings = None if cpu is None else sorted(host.siblings_of(cpu) - {cpu})
    return {
        "launching_cpu": cpu,
        "launching_cpu_siblings": siblings,
        "backward_cpu": cores.backward,
        "address_layout": host.address_layout(),
    }


def _keep_times(progress: Progress, timers: Timers, sides: Sides, built: Built) -> tuple[str, int | None]:
    """What is kept of the times. They are there before the device is traced, which leaves the process slower
    and may fail. Returns which are the latency, and the launches of CUDA graphs in a step of `own`.
    """
    headline = headline_of(progress.device.type, built.task, built.headline)
    results = [side.timer.results(side.times) for side in sides.in_order]
    launches = _note_times(progress, sides, results, headline)
    if progress.device.type != "cpu":
        with grad_context(built):
            _count_energy(progress, sides.own)
            progress.enter("tracing")
            timed = zip(sides.in_order, results, strict=True)
            traced = timers.trace([(side.timer, side.step_apart(), each) for side, each in timed])
            launches = _note_times(progress, sides, traced, headline)
    return headline, launches


def _note_times(progress: Progress, sides: Sides, results: list[SideTimes], headline: str) -> int | None:
    """Put them into the sides and the record. Returns the launches of CUDA graphs."""
    timing: dict[str, Any] = {"headline": headline, "control": None}
    timing["flush_l2"] = None if progress.device.type == "cpu" else progress.spec.sampling.flush_l2
    launches: dict[str, int | None] = {}
    for side, (times, facts) in zip(sides.in_order, results, strict=True):
        side.times, timing[side.name] = times, dict(facts)
        launches[side.name] = timing[side.name].pop("graph_launches", None)
        prefix = "" if side is sides.own else "control_"
        for name, values in times.items():
            setattr(progress.record, prefix + name, values)
    progress.record.timing = timing
    return launches[sides.own.name]


def _count_energy(progress: Progress, side: Side) -> None:
    """A second of steps of the measured side, where the runner reads the device and the time is there."""
    needed_ns = 2 * WINDOW_NS + side.latency_ns()
    if not progress.spec.device_state or not progress.deadline.leaves(needed_ns):
        return
    progress.enter("energy")
    with side.around():
        run_window(
            side.step,
            partial(torch.cuda.synchronize, progress.device),
            partial(progress.channel.energy, side.name),
            side.latency_ns(),
        )
