"""The cold start: the eager side, then `torch.compile` and the call that compiles, split into its phases.

A phase is the exclusive time of nested regions of the compiler; they add up to the whole first call.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilewatch.runner.worker.compiler import compiler_facts, compiling
from compilewatch.runner.worker.compiler.compiling import load
from compilewatch.runner.worker.device.timers import Timers
from compilewatch.runner.worker.held_memory import Partitions
from compilewatch.runner.worker.progress import Progress
from compilewatch.runner.worker.setup import Eager, start_eager
from compilewatch.runner.worker.step import memory
from compilewatch.runner.worker.step.host import compile_pool, tree_cpu_ns
from compilewatch.runner.worker.step.internals import (
    Tuning,
    collect_autotuning,
    collect_log,
    compile_threads_in_force,
    listen_to_events,
    time_spent_ns,
    wait_time_ns,
    watch_partitions,
)
from compilewatch.runner.worker.step.messages import Strategy
from compilewatch.runner.worker.step.steps import Variant, grad_context
from compilewatch.runner.worker.streams import FirstIteration
from compilewatch.runner.worker.timing.evidence import InstructionCounter

PHASES = (
    "dynamo",
    "aot_autograd",
    "inductor",
    "kernel_compile",
    "isa_probe",
    "autotune",
    "backward",
    "cudagraph_capture",
)

# Names of the regions torch times (torch/_dynamo/utils.py, `dynamo_timed`), to the phase they open. Whatever
# runs inside a region and opens no phase of its own belongs to the region. "isa_probe" and
# "precompiled_header" come from `listen_to_events`.
_PHASE_OF = {
    "entire_frame_compile": "dynamo",
    "_compile.compile_inner": "dynamo",
    "backend_compile": "aot_autograd",
    "inductor_compile": "inductor",
    "compile_fx_inner": "inductor",
    "async_compile.wait": "kernel_compile",
    "async_compile.precompile": "kernel_compile",
    "compile_file": "kernel_compile",
    "precompiled_header": "kernel_compile",
    "isa_probe": "isa_probe",
    "cudagraphify": "cudagraph_capture",
    "CUDAGraphNode.record": "cudagraph_capture",
}
_AUTOTUNE_MARKS = ("benchmark_all_configs", "autotun", "AlgorithmSelectorCache", "coordinate_descent")
_BACKWARD = "entire_backward_compile"


def phase_of(event: str) -> str | None:
    """The phase a timed region opens, or None when it belongs to what surrounds it."""
    if event == _BACKWARD:
        return "backward"
    if any(mark in event for mark in _AUTOTUNE_MARKS):
        return "autotune"
    if "cudagraph" in event.lower():
        return "cudagraph_capture"
    return _PHASE_OF.get(event)


class PhaseClock:
    """Splits the time of one thread among the phases, each instant to the innermost open one.

    A backward compilation is one phase whole, whatever opens inside it, since the forward has the same parts.
    Other threads are not listened to (the work of Inductor's pool overlaps and is no wall time), except one
    that compiles a backward: on a GPU autograd calls it from a thread of its own while this one waits.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._threads = {threading.get_ident()}
        self._stack: list[tuple[str, str]] = []
        self._since = clock()
        self.spent_ns: dict[str, int] = {}

    def _settle(self) -> None:
        now = self._clock()
        if self._stack:
            phase = self._stack[-1][1]
            self.spent_ns[phase] = self.spent_ns.get(phase, 0) + now - self._since
        self._since = now

    def begin(self, event: str) -> None:
        """A region opens; unknown ones continue the phase around them, outside of all they are `other`."""
        if event == _BACKWARD:
            self._threads.add(threading.get_ident())
        if threading.get_ident() not in self._threads:
            return
        self._settle()
        around = self._stack[-1][1] if self._stack else "other"
        phase = around if around == "backward" else phase_of(event) or around
        self._stack.append((event, phase))

    def end(self, event: str) -> None:
        """The innermost open region of this name closes, and with it what an exception left open inside."""
        if threading.get_ident() not in self._threads:
            return
        self._settle()
        for depth in reversed(range(len(self._stack))):
            if self._stack[depth][0] == event:
                del self._stack[depth:]
                return


def both(first: Callable[[str], None], second: Callable[[str], None]) -> Callable[[str], None]:
    """One listener of timed regions that tells two."""

    def listener(event: str) -> None:
        first(event)
        second(event)

    return listener


def with_remainder(spent_ns: dict[str, int], first_call_ns: int) -> dict[str, int | None]:
    """`phases_ns` of the record: the phases that were seen, and `other` as what is left of the call.

    A phase that was not seen is None: on a cache hit most do not run, and which did is not always told.
    """
    phases: dict[str, int | None] = {phase: spent_ns.get(phase) for phase in PHASES}
    phases["other"] = first_call_ns - sum(value for value in phases.values() if value is not None)
    return phases


def from_time_spent(spent: dict[str, int], wait_ns: int | None, first_call_ns: int) -> dict[str, int | None]:
    """Fallback where single regions cannot be heard: differences of torch's cumulative times.

    `inductor_compile` includes the backward's and `backend_compile` does not, so with a backward the parts of
    the forward cannot be told apart and only `dynamo` and `backward` are given.
    """
    phases: dict[str, int] = {}
    frame, backend = spent.get("entire_frame_compile"), spent.get("backend_compile")
    inductor, backward = spent.get("inductor_compile"), spent.get("entire_backward_compile")
    if frame is not None and backend is not None:
        phases["dynamo"] = frame - backend
    if backward is not None:
        phases["backward"] = backward
    elif backend is not None and inductor is not None:
        phases["aot_autograd"] = backend - inductor
        phases["inductor"] = inductor - (wait_ns or 0)
        if wait_ns is not None:
            phases["kernel_compile"] = wait_ns
    if any(value < 0 for value in phases.values()) or sum(phases.values()) > first_call_ns:
        phases = {}
    return with_remainder(phases, first_call_ns)


@dataclass(frozen=True)
class Compiled:
    """The compiled side after its first call."""

    variant: Variant
    first: FirstIteration
    cpu_before_ns: int
    peak_rss_before: int | None
    peak_bytes: int | None
    """Of the call, compilation included."""
    partitions: Partitions
    log: list[tuple[str, str]]
    tunings: list[Tuning] | None
    listening: contextlib.ExitStack
    """By which `log` and `tunings` are filled until the compiler's facts are read."""
    uses_cudagraphs: bool
    pool_size: int
    """Processes of the compiler's pool after the call."""


@dataclass(frozen=True)
class Started:
    """Both sides after their first calls."""

    eager: Eager
    compiled: Compiled | None

    @property
    def subject(self) -> Variant:
        """What the strategy says; eager's own where it says eager."""
        return self.eager.control if self.compiled is None else self.compiled.variant

    def compiler_facts(self, cudagraph_launches: int | None = None) -> dict[str, Any] | None:
        """`Compiler` of the record; nothing is listened to from then on. None where nothing is compiled."""
        if self.compiled is None:
            return None
        found = compiler_facts.facts(
            self.compiled.log, self.compiled.tunings, cudagraphs_requested=self.compiled.uses_cudagraphs
        )
        self.compiled.listening.close()
        return found | {
            "cudagraph_launches": cudagraph_launches,
            "already_compiled": self.eager.already_compiled,
            "compile_threads": compile_threads_in_force(),
            "compile_pool_size": self.compiled.pool_size,
        }


def start_cold(
    progress: Progress, timers: Timers, strategy: Strategy, counter: InstructionCounter | None
) -> Started:
    """The first eager result and, for a compiled strategy, the first compiled one."""
    eager = start_eager(progress, timers)
    compiled = None if progress.is_eager else _first_call(progress, eager, strategy, counter)
    progress.record.first_result_ns = time.monotonic_ns()
    cold = progress.record.cold_start
    cold["process_tree_cpu_ns"] = cpu_ns = tree_cpu_ns()
    if compiled is not None:
        cold["first_call_cpu_ns"] = cpu_ns - compiled.cpu_before_ns
    return Started(eager, compiled)


def _first_call(
    progress: Progress, eager: Eager, strategy: Strategy, counter: InstructionCounter | None
) -> Compiled:
    """`torch.compile` and the first call of what it returns."""
    spec, device, target = progress.spec, progress.device, eager.target
    listening, partitions = contextlib.ExitStack(), Partitions()
    log = listening.enter_context(collect_log())
    tunings = listening.enter_context(collect_autotuning())
    listening.enter_context(watch_partitions(partitions.note))
    if progress.ranks.are_grouped:
        listening.enter_context(progress.ranks.listening(log))
    compile_peak = memory.CompilePeak(device)
    clock = PhaseClock(time.monotonic_ns)
    first = FirstIteration(log)
    peak_rss_before = memory.peak_rss_bytes()
    compile_peak.begin()
    begin, end = both(clock.begin, first.begin), both(clock.end, first.end)
    cpu_before_ns = tree_cpu_ns()
    instructions = counter.read() if counter else None
    with progress.phase("first_call"), listen_to_events(begin, end) as is_reported:
        first.is_reported = is_reported
        started = time.monotonic_ns()
        artifacts = Path(spec.artifacts)
        if spec.purpose not in ("prime", "trace"):
            load(strategy, artifacts)
        # A model that memory does not suffice to copy has one optimizer, whose moments are as large.
        shares = target is eager.control.built and target.scheduler is None
        shared = eager.control.optimizer if shares else None
        variant = compiling.compiled_variant(target, strategy, artifacts, device, shared)
        variant = progress.ranks.led(variant, is_compiled=True)
        with grad_context(variant.built):
            first.finish(variant, device)
        elapsed_ns = time.monotonic_ns() - started
    cold = progress.record.cold_start
    cold["first_call_ns"] = elapsed_ns
    cold["first_call_instructions"] = _instructions_since(counter, instructions)
    cold |= _phases(clock, elapsed_ns, is_reported=is_reported)
    return Compiled(
        variant=variant,
        first=first,
        cpu_before_ns=cpu_before_ns,
        peak_rss_before=peak_rss_before,
        peak_bytes=compile_peak.end(variant),
        partitions=partitions,
        log=log,
        tunings=tunings,
        listening=listening,
        uses_cudagraphs=compiling.uses_cudagraphs(strategy, device.type),
        pool_size=len(compile_pool()),
    )


def _instructions_since(counter: InstructionCounter | None, before: int | None) -> int | None:
    """What the first compiled call executed; nothing is counted from then on."""
    if counter is None:
        return None
    after = counter.read()
    counter.close()
    return None if before is None or after is None else after - before


def _phases(clock: PhaseClock, elapsed_ns: int, *, is_reported: bool) -> dict[str, Any]:
    if is_reported:
        split = with_remainder(clock.spent_ns, elapsed_ns)
        return {"phase_source": "dynamo_timed_events", "phases_ns": split}
    spent = time_spent_ns()
    if spent is not None:
        split = from_time_spent(spent, wait_time_ns(), elapsed_ns)
        return {"phase_source": "calculate_time_spent", "phases_ns": split}
    return {"phase_source": "wall", "phases_ns": with_remainder({}, elapsed_ns)}
