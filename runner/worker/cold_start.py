"""The cold start: the eager side, then `torch.compile` and the call that compiles, split into its phases."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilewatch.runner.worker.artifacts import load
from compilewatch.runner.worker.compiler import compiler_facts, compiling, phases
from compilewatch.runner.worker.device.timers import Timers
from compilewatch.runner.worker.held import Partitions
from compilewatch.runner.worker.host.cpu_time import compile_pool, tree_cpu_ns
from compilewatch.runner.worker.internals.autotuning import Tuning, collect_autotuning
from compilewatch.runner.worker.internals.compilations import listen_to_events, time_spent_ns, wait_time_ns
from compilewatch.runner.worker.internals.compiler import compile_threads_in_force, watch_partitions
from compilewatch.runner.worker.internals.log import collect_log
from compilewatch.runner.worker.progress import Progress
from compilewatch.runner.worker.setup import Eager, start_eager
from compilewatch.runner.worker.step import memory
from compilewatch.runner.worker.step.messages import Strategy
from compilewatch.runner.worker.step.steps import Variant, grad_context
from compilewatch.runner.worker.streams import FirstIteration
from compilewatch.runner.worker.timing.evidence import InstructionCounter


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
    clock = phases.PhaseClock(time.monotonic_ns)
    first = FirstIteration(log)
    peak_rss_before = memory.peak_rss_bytes()
    compile_peak.begin()
    begin, end = phases.both(clock.begin, first.begin), phases.both(clock.end, first.end)
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


def _phases(clock: phases.PhaseClock, elapsed_ns: int, *, is_reported: bool) -> dict[str, Any]:
    if is_reported:
        split = phases.with_remainder(clock.spent_ns, elapsed_ns)
        return {"phase_source": "dynamo_timed_events", "phases_ns": split}
    spent = time_spent_ns()
    if spent is not None:
        split = phases.from_time_spent(spent, wait_time_ns(), elapsed_ns)
        return {"phase_source": "calculate_time_spent", "phases_ns": split}
    return {"phase_source": "wall", "phases_ns": phases.with_remainder({}, elapsed_ns)}
