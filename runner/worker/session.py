"""The steps of a trial that need torch: cold start, warm-up, samples, and what is looked at afterwards."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from runner.worker import bisecting, held, numerics, streams
from runner.worker.artifacts import load, save
from runner.worker.compiler import compiler_facts, compiling, explaining, knobs, phases
from runner.worker.device.timers import Timers
from runner.worker.failures import WrongResultError
from runner.worker.host import affinity, free_memory
from runner.worker.host.cpu_time import tree_cpu_ns
from runner.worker.inspection import held_of, peak_of
from runner.worker.ranks import Ranks, threads_of
from runner.worker.step import internals, loading, memory, profiling
from runner.worker.step.messages import Channel, Record, Specification
from runner.worker.step.state import State, functions_of
from runner.worker.step.steps import (
    Variant,
    apart,
    grad_context,
    make_variant,
    own_copy,
    own_inputs,
    require_values,
)
from runner.worker.timing import energy
from runner.worker.timing.cpu_timer import Kept, headline_of
from runner.worker.timing.evidence import InstructionCounter, host_state
from runner.worker.timing.sampling import (
    Deadline,
    NotSteadyError,
    Sampler,
    Side,
    TimedBlocks,
    until_steady,
    warm_up,
)
from runner.workloads.built import TRAINING

SETTLING_CALLS = 3
_MOST_NAMED = 20
# Eager calls before anything is compiled, at most.
_EAGER_CALLS = 5
_EAGER_BEFORE_NS = 100_000_000
# Weights, and for each side gradients and the two moments of an optimizer such as Adam.
_COPIES_OF_TRAINING = 7
# torch/csrc/autograd: what `backward()` raises where nothing was recorded.
_NO_GRADIENT = "does not require grad and does not have a grad_fn"


def configure(spec: Specification) -> None:
    """Pin what changes speed: threads, matmul precision, cuDNN's choice of kernels, seeds."""
    torch.set_num_threads(threads_of(spec))
    torch.set_float32_matmul_precision(spec.settings["matmul_precision"])
    torch.backends.cudnn.benchmark = False
    numerics.seed_all(spec.seed)


def start_backward_threads() -> None:
    """Start autograd's threads, one for each device: any first backward does."""
    torch.ones(1, requires_grad=True).sum().backward()  # type: ignore[no-untyped-call]


class Session:
    """One case in this process: `record` is filled as its parts become known."""

    def __init__(
        self,
        spec: Specification,
        channel: Channel,
        record: Record,
        counter: InstructionCounter | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        self._spec = spec
        self._channel = channel
        self._record = record
        self._deadline = deadline or Deadline()
        self._cold = record.cold_start
        self._counter = counter
        self._strategy = spec.strategy
        self._is_eager = spec.strategy.kind == "eager"
        self._device = torch.device(spec.device)
        self._plan = spec.sampling
        self._timers = Timers(self._device, flush_l2=self._plan.flush_l2)
        self._cores = affinity.Cores()
        if self._device.type != "cpu":
            self._cores = affinity.bind_feeding_threads(start_backward_threads, spec.cpus)
        self._artifacts = Path(spec.artifacts)
        self._log: list[tuple[str, str]] = []
        self._tunings: list[internals.Tuning] | None = None
        self._log_context = contextlib.ExitStack()
        self._graph_launches: int | None = None
        self._entered: set[str] = set()
        self._ranks = Ranks()

    def _enter(self, phase: str) -> None:
        """Say that `phase` begins now, and what is known before it."""
        self._channel.keep(self._record)
        self._channel.enter(phase)
        # What was put back once and compiled for anew is left alone: else that would never end.
        is_repeated = phase in ("warmup", "sampling") and phase in self._entered
        self._entered.add(phase)
        if phase in ("warmup", "sampling", "memory", "numerics") and not is_repeated:
            for state in self._states:
                state.restore(optimizers=False)
            self._ranks.restore()

    @contextlib.contextmanager
    def _phase(self, name: str, key: str | None = None) -> Iterator[None]:
        self._enter(name)
        started = time.monotonic_ns()
        yield
        if key is not None:
            self._cold[key] = time.monotonic_ns() - started

    def start_eager(self) -> None:
        """Libraries, model and first eager result."""
        workload = self._spec.workload
        if workload.ranks > 1:
            with self._own_time():
                self._ranks.start(self._spec)
        with self._phase("import_libraries", "import_libraries_ns"):
            builder = loading.import_builder(workload.target, workload.path)
        if not self._is_eager:
            # Before the model: an optimizer imports a part of it, which would pass for the cost of the model.
            with self._phase("import_compile_stack", "import_compile_stack_ns"):
                internals.import_compile_stack()
        self._compilations = (lambda: 0) if self._is_eager else internals.count_compilations()
        with self._phase("build_model", "build_model_ns"):
            built = loading.build_workload(builder, workload, self._device)
            compiled = [
                name or "the whole" for name, each in functions_of(built) if internals.is_compiled(each)
            ]
            self._already_compiled = list(dict.fromkeys(compiled))[:_MOST_NAMED] or None
            built = replace(built, model_or_fn=internals.as_written(built.model_or_fn))
            self._control = self._ranks.led(make_variant(built), is_compiled=False)
            needs_own = not self._ranks.are_several and compiling.needs_own_model(built, self._strategy)
            # Where memory does not suffice both sides share the model.
            copies = _COPIES_OF_TRAINING if built.task == TRAINING else 2
            needs_own = needs_own and memory.suffices_for(self._control, self._device, copies)
            self._target = own_copy(built) if needs_own else built
        with self._own_time():
            self._states = [State(built)]
            if self._ranks.are_several and not self._is_eager:
                # What holds a process group cannot be copied.
                numerics.seed_all(self._spec.seed)
                again = loading.build_workload(builder, workload, self._device)
                self._target = replace(again, model_or_fn=internals.as_written(again.model_or_fn))
                self._states.append(State(self._target))
        self._control_first = streams.FirstIteration()
        self._first_eager()
        if not self._is_eager:
            with self._own_time():
                self._note_eager()
                if not self._ranks.are_several:
                    self._part(has_own_model=needs_own)
                self._make_room()

    def note_ranks(self) -> None:
        """What each rank did; the others end with it. Raises RankFailedError where one failed by itself."""
        found = self._ranks.facts(on_cpu=self._device.type == "cpu")
        if found and self._record.compiler is not None:
            self._record.compiler["ranks"] = found

    def start_cold(self) -> None:
        """What `start_eager` does and, for a compiled strategy, the first compiled result."""
        self.start_eager()
        self._subject = self._control if self._is_eager else self._compile()
        self._record.first_result_ns = time.monotonic_ns()
        self._cold["process_tree_cpu_ns"] = cpu_ns = tree_cpu_ns()
        if not self._is_eager:
            self._cold["first_call_cpu_ns"] = cpu_ns - self._cpu_before_ns

    @contextlib.contextmanager
    def _own_time(self) -> Iterator[None]:
        """What is done inside is no cost of the workload."""
        started = time.monotonic_ns()
        yield
        self._cold["harness_ns"] = self._cold.get("harness_ns", 0) + time.monotonic_ns() - started

    def _first_eager(self) -> None:
        """The first eager result. A step that calls `backward()` itself is found out by trying."""
        built, started = self._control.built, time.monotonic_ns()
        try:
            with self._phase("eager_first", "eager_first_ns"), grad_context(built), internals.force_eager():
                self._first(self._control, self._control_first)
        except RuntimeError as error:
            if self._ranks.are_several or built.task == TRAINING or _NO_GRADIENT not in str(error):
                raise
            tried_ns = time.monotonic_ns() - started
            self._states[0].restore()
            shares = self._target is built
            built = replace(built, with_gradients=True)
            self._control = make_variant(built)
            self._target = built if shares else replace(self._target, with_gradients=True)
            self._states = [State(built)]
            self._control_first = streams.FirstIteration()
            with self._phase("eager_first", "eager_first_ns"), grad_context(built), internals.force_eager():
                self._first(self._control, self._control_first)
            # The try has paid what a process pays once.
            self._cold["eager_first_ns"] += tried_ns
        if self._spec.workload.task_is_open:
            self._record.task = TRAINING if built.with_gradients else built.task

    def _note_eager(self) -> None:
        """A few eager calls, which are all that is known of a model whose compilation does not end."""
        if self._spec.purpose != "measure" or self._cold["eager_first_ns"] > _EAGER_BEFORE_NS:
            return
        side, began = Side(self._control.step, self._timers.side()), time.monotonic_ns()
        with grad_context(self._control.built), internals.force_eager():
            while len(side.warmup_ns) < _EAGER_CALLS and time.monotonic_ns() - began < _EAGER_BEFORE_NS:
                side.warm_call()
        self._record.control_warmup_ns = side.warmup_ns

    def _part(self, *, has_own_model: bool) -> None:
        """Give the compiled side inputs and state of its own where a step changes them, so that the other
        side does not; unless they cannot be copied, or memory does not suffice.
        """
        (state,), built = self._states, self._control.built
        changed = [name for name in state.changed_names() if not name.startswith("setting")]
        state.restore()
        if has_own_model and any(name.startswith("input") for name in changed):
            with contextlib.suppress(Exception):
                self._target = own_inputs(self._target)
        elif (
            changed
            and not has_own_model
            and state.is_complete
            and memory.suffices_for(self._control, self._device)
        ):
            with contextlib.suppress(Exception):
                self._target = apart(built)
        if self._target is not built:
            self._states.append(State(self._target))

    def _make_room(self) -> None:
        """Where less memory is left than this process has, it keeps nothing that lies idle while the compiler
        works: eager's gradients, and what was freed.
        """
        free, held = free_memory.available_bytes(), memory.rss_bytes()
        if free is None or held is None or free > held:
            return
        if self._control.optimizer is not None:
            self._control.optimizer.zero_grad(set_to_none=True)
        free_memory.give_back()

    def _first(self, variant: Variant, first: streams.FirstIteration) -> None:
        require_values(first.run(variant))
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def _compile(self) -> Variant:
        """`torch.compile` and the first call of what it returns, split into its phases."""
        self._log = self._log_context.enter_context(internals.collect_log())
        self._tunings = self._log_context.enter_context(internals.collect_autotuning())
        self._partitions = held.Partitions()
        self._log_context.enter_context(internals.watch_partitions(self._partitions.note))
        if self._ranks.are_several:
            self._log_context.enter_context(self._ranks.listening(self._log))
        self._compile_peak = memory.CompilePeak(self._device)
        clock = phases.PhaseClock(time.monotonic_ns)
        self._first_iteration = first = streams.FirstIteration(self._log)
        self._rss_before = memory.peak_rss_bytes()
        self._compile_peak.begin()
        begin, end = phases.both(clock.begin, first.begin), phases.both(clock.end, first.end)
        self._cpu_before_ns = tree_cpu_ns()
        instructions = self._counter.read() if self._counter else None
        with self._phase("first_call"), internals.listen_to_events(begin, end) as is_reported:
            first.is_reported = is_reported
            started = time.monotonic_ns()
            if self._spec.purpose not in ("prime", "trace"):
                load(self._strategy, self._artifacts)
            call = compiling.apply(self._target, self._strategy, self._artifacts)
            if compiling.uses_cudagraphs(self._strategy, self._device.type):
                call = compiling.marked(call)
            compile_step = compiling.optimizer_compiler(self._strategy)
            # A model that memory does not suffice to copy has one optimizer, whose moments are as large.
            shares = self._target is self._control.built and self._target.scheduler is None
            shared = self._control.optimizer if shares else None
            variant = make_variant(self._target, call, compile_step, shared)
            variant = self._ranks.led(variant, is_compiled=True)
            with affinity.unbound(), grad_context(variant.built):
                self._first(variant, first)
            elapsed_ns = time.monotonic_ns() - started
        self._cold["first_call_ns"] = elapsed_ns
        self._cold["first_call_instructions"] = self._instructions_since(instructions)
        self._cold |= self._split(clock, elapsed_ns, is_reported=is_reported)
        self._peak_with_compile = self._compile_peak.end(variant)
        return variant

    def _instructions_since(self, before: int | None) -> int | None:
        """What the first compiled call executed; nothing is counted from then on."""
        if self._counter is None:
            return None
        after = self._counter.read()
        self._counter.close()
        return None if before is None or after is None else after - before

    @staticmethod
    def _split(clock: phases.PhaseClock, elapsed_ns: int, *, is_reported: bool) -> dict[str, Any]:
        if is_reported:
            return {
                "phase_source": "dynamo_timed_events",
                "phases_ns": phases.with_remainder(clock.spent_ns, elapsed_ns),
            }
        spent = internals.time_spent_ns()
        if spent is not None:
            split = phases.from_time_spent(spent, internals.wait_time_ns(), elapsed_ns)
            return {"phase_source": "calculate_time_spent", "phases_ns": split}
        return {"phase_source": "wall", "phases_ns": phases.with_remainder({}, elapsed_ns)}

    def bisect(self) -> None:
        """Which part of the compiler is to blame for a failure, by compiling anew with parts left out."""
        self.start_eager()
        with self._phase("bisection"):
            attempts = bisecting.Attempts(self._spec, self._control, self._deadline)
            self._record.bisection = bisecting.bisect(attempts)

    def save_cache(self) -> None:
        """What the priming process of a trial leaves for the measured one."""
        with self._phase("save_cache"):
            save(self._strategy, self._artifacts)

    def warm_up(self) -> None:
        """Call each variant until it is steady; the compiled one first, as its cold start goes on."""
        compiled = self._compilations
        self._side = Side(self._subject.step, self._timers.side(), compilations=compiled)
        if self._is_eager:
            self._side.around = internals.force_eager
        self._sides = [self._side]
        if not self._is_eager:
            step, timer = self._control.step, self._timers.side()
            self._control_side = Side(step, timer, "control", compilations=compiled)
            self._control_side.around = internals.force_eager
            self._sides = [self._control_side, self._side]
        self._settle_sides()

    def _settle_sides(self) -> None:
        self._enter("warmup")
        with grad_context(self._subject.built):
            try:
                self._warmup_ended_by = warm_up(self._side, self._plan, self._deadline)
                if not self._is_eager:
                    warm_up(self._control_side, self._plan, self._deadline)
                    if knobs.skips_guards(self._strategy.options):
                        self._side.around = internals.without_telling_guards
            except NotSteadyError:
                self._record.warmup_ns = self._side.warmup_ns
                self._record.compiler = None if self._is_eager else self._compiler_facts()
                raise

    def sample(self) -> None:
        """The timed part: eager and compiled in alternating blocks. Where the compiler runs again meanwhile,
        it was not steady: it is warmed up once more and nothing of before is kept.
        """
        between = self._channel.pause if self._spec.device_state else lambda _side: False
        on_cpu = self._device.type == "cpu"
        while True:
            self._enter("sampling")
            self._pool_ended = None if on_cpu else internals.end_compile_pool()
            sampler = Sampler(
                self._plan,
                cpu_bound=on_cpu,
                between_blocks=between,
                deadline=self._deadline,
                held_bytes=partial(memory.held_bytes, self._device),
            )
            with grad_context(self._subject.built):
                evidence = sampler.take(self._sides)
            if evidence.ended_by != "compiler":
                break
            self._settle_sides()
        self._growth = memory.growth_per_call(evidence.held)
        first = self._cold["eager_first_ns" if self._is_eager else "first_call_ns"]
        calls, spent = until_steady(first, self._side)
        self._cold |= {"calls_until_steady": calls, "until_steady_ns": spent}
        self._host_state = host_state(evidence.blocks, evidence.rejected, evidence.canaries_ns)
        self._record.host_state = self._host_state
        self._record.warmup_ns = self._side.warmup_ns
        self._record.sampling = self._sampling_facts(evidence)
        if not self._is_eager:
            self._record.control_warmup_ns = self._control_side.warmup_ns

    def _finish_timing(self) -> None:
        """What is kept of the times. They are there before the device is traced, which leaves the process
        slower and may fail.
        """
        built = self._subject.built
        self._headline = headline_of(self._device.type, built.task, built.headline)
        kept = [side.timer.results(side.times) for side in self._sides]
        self._note_times(kept)
        if self._device.type == "cpu":
            return
        self._host_state |= self._host_of_gpu()
        self._count_energy()
        self._enter("tracing")
        with grad_context(built):
            timed = zip(self._sides, kept, strict=True)
            self._note_times(
                self._timers.trace([(side.timer, side.step_apart(), each) for side, each in timed])
            )

    def _count_energy(self) -> None:
        """A second of steps of the measured side, where the runner reads the device and the time is there."""
        side = self._side
        if not self._spec.device_state or not self._deadline.leaves(2 * energy.WINDOW_NS + side.latency_ns()):
            return
        self._enter("energy")
        with grad_context(self._subject.built), side.around():
            energy.run_window(
                side.step,
                partial(torch.cuda.synchronize, self._device),
                partial(self._channel.energy, side.name),
                side.latency_ns(),
            )

    def _note_times(self, kept: list[Kept]) -> None:
        on_cpu = self._device.type == "cpu"
        timing: dict[str, Any] = {"headline": self._headline, "control": None}
        timing["flush_l2"] = None if on_cpu else self._plan.flush_l2
        for side, (times, facts) in zip(self._sides, kept, strict=True):
            side.times, timing[side.name] = times, dict(facts)
            graph_launches = timing[side.name].pop("graph_launches", None)
            if side is self._side:
                self._graph_launches = graph_launches
            prefix = "" if side is self._side else "control_"
            for name, values in times.items():
                setattr(self._record, prefix + name, values)
        self._record.timing = timing

    def _host_of_gpu(self) -> dict[str, Any]:
        """Where the thread that feeds the GPU runs: issue time differs between processes, often in two modes,
        and these are what is suspected.
        """
        cpu = self._cores.launching
        siblings = None if cpu is None else sorted(affinity.siblings_of(cpu) - {cpu})
        return {
            "launching_cpu": cpu,
            "launching_cpu_siblings": siblings,
            "backward_cpu": self._cores.backward,
            "compile_pool_ended": self._pool_ended,
            "address_layout": affinity.address_layout(),
        }

    def _sampling_facts(self, evidence: TimedBlocks) -> dict[str, Any]:
        plan = self._plan
        return {
            "samples": plan.samples,
            "max_samples": plan.max_samples,
            "relative_interval": plan.relative_interval,
            "reached_interval": evidence.reached_interval,
            "ended_by": evidence.ended_by,
            "warmup_ended_by": self._warmup_ended_by,
            "flush_l2": None if self._device.type == "cpu" else plan.flush_l2,
            "block_ns": plan.block_ns,
            "settle_ns": plan.settle_ns,
            "order": "ABBA" if len(self._sides) > 1 else "A",
            "garbage_collector": gc.isenabled(),
        }

    def settle(self) -> None:
        """A few calls more, at which automatic dynamic shapes recompile; for the compiler's own log."""
        with self._phase("warmup"), grad_context(self._subject.built):
            for _ in range(SETTLING_CALLS):
                self._subject.step()
        self._record.sources = compiler_facts.sources()

    def explain(self) -> None:
        """What the compiler takes of the workload, without code being generated."""
        explained = explaining.Explained()
        self._strategy = replace(self._strategy, backend=explaining.BACKEND)
        self.start_cold()
        self.settle()
        self._record.compiler = self._compiler_facts()
        self._record.probes = explained.facts()

    def profile(self) -> None:
        """Both sides under the profiler, and what eager computes and moves."""
        with self._phase("profile"), grad_context(self._subject.built):
            own = profiling.profile_side(self._subject.step, self._device)
            with internals.force_eager():
                control = None if self._is_eager else profiling.profile_side(self._control.step, self._device)
                counted = profiling.counted(self._control.step)
        self._record.profile = {"steps": profiling.STEPS, "own": own, "control": control, **counted}

    def inspect(self) -> None:
        """Compiler facts, memory and numerics: outside of what is timed."""
        self._finish_timing()
        facts = None if self._is_eager else self._compiler_facts()
        self._record.stream = self._stream_facts()
        self._enter("memory")
        self._timers.release()
        device, deadline = self._device, self._deadline
        others = [] if self._is_eager else [self._control]
        own = peak_of(self._side, self._subject, others, device, deadline)
        if self._is_eager:
            peak_rss = memory.peak_rss_bytes()
            self._record.memory = memory.memory_record(
                own,
                None,
                with_compile=None,
                peak_rss=peak_rss,
                growth=self._growth,
                saved=self._held({"saved": (self._side, self._subject, None)}),
            )
            return
        control = peak_of(self._control_side, self._control, [self._subject], device, deadline)
        peaks = [peak for peak in (self._rss_before, memory.peak_rss_bytes()) if peak is not None]
        self._record.compiler = facts
        sides = {
            "saved": (self._side, self._subject, self._partitions),
            "control_saved": (self._control_side, self._control, None),
        }
        self._record.memory = memory.memory_record(
            own,
            control,
            with_compile=self._peak_with_compile,
            peak_rss=max(peaks, default=None),
            growth=self._growth,
            saved=self._held(sides),
        )
        if self._ranks.are_several:
            # The check calls models in ways of its own, which the other ranks would not take with it.
            self._record.numerics = {"status": "not_checked", "reason": "several ranks"}
            return
        self._enter("numerics")
        self._record.numerics, wrong = numerics.check(
            self._control,
            self._subject,
            (self._states[0], self._states[-1]),
            self._spec.seed,
            draws_as_eager=bool(self._strategy.options.get("fallback_random")),
            deadline=self._deadline,
        )
        if wrong is not None:
            raise WrongResultError(wrong)

    def _held(self, sides: Mapping[str, tuple[Side, Variant, held.Partitions | None]]) -> dict[str, Any]:
        """Nothing of several ranks: a backward pass alone would wait for the others for ever."""
        return {} if self._ranks.are_several else held_of(sides, self._device, self._deadline)

    def _stream_facts(self) -> dict[str, Any] | None:
        built = self._subject.built
        name = self._headline + "_ns"
        if self._is_eager:
            return streams.facts(built, self._control_first, self._side.times[name], None, [])
        samples = (self._side.times[name], self._control_side.times[name])
        return streams.facts(built, self._first_iteration, samples[0], self._control_first, samples[1])

    def _compiler_facts(self) -> dict[str, Any]:
        requested = compiling.uses_cudagraphs(self._strategy, self._device.type)
        facts = compiler_facts.facts(self._log, self._tunings, cudagraphs_requested=requested)
        self._log_context.close()
        return facts | {
            "cudagraph_launches": self._graph_launches,
            "already_compiled": self._already_compiled,
        }
