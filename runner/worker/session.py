"""One case in this process: the steps of a trial that need torch, in the order of what the process is for."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from compilewatch.runner.worker import bisecting, inspection, losses, numerics
from compilewatch.runner.worker.cold_start import Started, start_cold
from compilewatch.runner.worker.compiler import compiler_facts
from compilewatch.runner.worker.compiler.compiling import save
from compilewatch.runner.worker.device.cuda import CudaDevice
from compilewatch.runner.worker.device.timers import Timers
from compilewatch.runner.worker.device.tracing import Tracer
from compilewatch.runner.worker.failures import describe, is_ours, kind_of
from compilewatch.runner.worker.progress import Progress
from compilewatch.runner.worker.setup import start_backward_threads, start_eager
from compilewatch.runner.worker.step import host, loading, profiling
from compilewatch.runner.worker.step.internals import force_eager
from compilewatch.runner.worker.step.steps import grad_context, make_variant
from compilewatch.runner.worker.timed import time_sides
from compilewatch.runner.worker.timing.evidence import InstructionCounter

SETTLING_CALLS = 3
_RETRIED_NS = 30_000_000_000


class Session:
    """The device is made ready for timing when it begins."""

    def __init__(
        self,
        progress: Progress,
        counter: InstructionCounter | None = None,
        bound: frozenset[int] = host.ALL,
    ) -> None:
        self._progress = progress
        self._record = progress.record
        self._counter = counter
        spec = progress.spec
        self._timers = Timers(progress.device, flush_l2=spec.sampling.flush_l2)
        self._cores = host.Cores(timed_on=bound)
        if progress.device.type != "cpu":
            self._cores = host.bind_feeding_threads(start_backward_threads, spec.cpus)
            host.unbind()

    def run(self) -> None:
        """What the process is for."""
        spec = self._progress.spec
        if spec.purpose == "bisect":
            self._bisect()
            return
        if spec.purpose == "losses":
            with self._progress.phase("losses"):
                self._record.losses = losses.compare(self._progress, spec.steps)
            return
        if spec.purpose == "explain":
            self._explain()
            return
        started = start_cold(self._progress, self._timers, spec.strategy, self._counter)
        if spec.purpose == "trace":
            self._settle(started)
        elif spec.purpose == "prime":
            # What the priming process of a trial leaves for the measured one.
            with self._progress.phase("save_cache"):
                save(spec.strategy, Path(spec.artifacts))
        elif spec.purpose == "profile":
            self._profile(started)
        else:
            timed = time_sides(self._progress, self._timers, self._cores, started)
            inspection.inspect(self._progress, self._timers, started, timed)
            self.note_ranks()

    def recheck_with_eager(self, error: Exception) -> None:
        """After `error` in a later call: whether eager alone, built anew, fails too as it is called for as
        long as both sides were. Raises WorkloadError where it does.
        """
        progress = self._progress
        spec, tried_ns = progress.spec, min(_RETRIED_NS, 2 * progress.since_ns("warmup"))
        is_crash = kind_of(error, progress.channel.phase, ours=is_ours(error)) == "crash"
        if not is_crash or spec.workload.ranks is not None or not progress.deadline.leaves(tried_ns):
            return
        numerics.seed_all(spec.seed)
        builder = loading.import_builder(spec.workload.target, spec.workload.path)
        built = loading.build_workload(builder, spec.workload, progress.device)
        step = make_variant(built).step
        call, ends = 1, time.monotonic_ns() + tried_ns
        with grad_context(built), force_eager():
            while time.monotonic_ns() < ends:
                try:
                    step()
                except Exception as again:
                    too = "" if progress.is_eager else " too"
                    raise loading.WorkloadError(
                        f"Eager fails{too} at call {call}: {describe(again)}"
                    ) from again
                call += 1

    def note_ranks(self) -> None:
        """What each rank did; the others end with it. Raises RankFailedError where one failed by itself."""
        found = self._progress.ranks.facts(on_cpu=self._progress.device.type == "cpu")
        if found and self._record.compiler is not None:
            self._record.compiler["ranks"] = found

    def _bisect(self) -> None:
        """Which part of the compiler is to blame for a failure, by compiling anew with parts left out."""
        progress = self._progress
        eager = start_eager(progress, self._timers)
        with progress.phase("bisection"):
            attempts = bisecting.Attempts(progress.spec, eager.control, progress.deadline)
            self._record.bisection = bisecting.bisect(attempts)

    def _explain(self) -> None:
        """What the compiler takes of the workload, without code being generated."""
        explained = compiler_facts.Explained()
        strategy = replace(self._progress.spec.strategy, backend=compiler_facts.BACKEND)
        started = start_cold(self._progress, self._timers, strategy, self._counter)
        self._settle(started)
        self._record.compiler = started.compiler_facts()
        self._record.probes = explained.facts()

    def _settle(self, started: Started) -> None:
        """A few calls more, at which automatic dynamic shapes recompile; for the compiler's own log."""
        with self._progress.phase("warmup"), grad_context(started.subject.built):
            for _ in range(SETTLING_CALLS):
                started.subject.step()
        self._record.sources = compiler_facts.sources()

    def _profile(self, started: Started) -> None:
        """Both sides under the profiler, and what eager computes and moves."""
        subject, eager_step, device = started.subject, started.eager.control.step, self._progress.device
        on_gpu = device.type != "cpu"
        noted = Tracer(CudaDevice(device, flush_l2=False, keeps_events=True)).events if on_gpu else None
        with self._progress.phase("profile"), grad_context(subject.built):
            with host.running_on(self._cores.timed_on):
                own = profiling.profile_side(subject.step, device, noted)
                with force_eager():
                    is_eager = self._progress.is_eager
                    control = None if is_eager else profiling.profile_side(eager_step, device, noted)
            with force_eager():
                counted = profiling.counted(eager_step)
        self._record.profile = {"steps": profiling.STEPS, "own": own, "control": control, **counted}
