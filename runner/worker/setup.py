"""What there is before anything is compiled: libraries, model, the first eager results, the state of both
sides.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from compilewatch.runner.worker import numerics
from compilewatch.runner.worker.compiler import compiling
from compilewatch.runner.worker.device.timers import Timers
from compilewatch.runner.worker.host import free_memory
from compilewatch.runner.worker.internals.compilations import count_compilations
from compilewatch.runner.worker.internals.compiler import import_compile_stack
from compilewatch.runner.worker.internals.stance import as_written, force_eager, is_compiled
from compilewatch.runner.worker.progress import Progress
from compilewatch.runner.worker.ranks import threads_of
from compilewatch.runner.worker.step import loading, memory
from compilewatch.runner.worker.step.messages import Specification
from compilewatch.runner.worker.step.state import State, functions_of
from compilewatch.runner.worker.step.steps import (
    Variant,
    apart,
    grad_context,
    make_variant,
    own_copy,
    own_inputs,
)
from compilewatch.runner.worker.streams import FirstIteration
from compilewatch.runner.worker.timing.sampling import Side
from compilewatch.runner.workloads.built import TRAINING, Built

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


@dataclass(frozen=True)
class Eager:
    """The eager side after its first call, and what is to be compiled."""

    control: Variant
    first: FirstIteration
    target: Built
    """With model and inputs of its own where a step changes them."""
    compilations: Callable[[], int]
    """How often the compiler has run in this process."""
    already_compiled: list[str] | None
    """Parts that the workload compiles itself."""


def start_eager(progress: Progress, timers: Timers) -> Eager:
    """Libraries, model and first eager result."""
    spec, ranks, is_eager = progress.spec, progress.ranks, progress.is_eager
    workload = spec.workload
    if workload.ranks > 1:
        with progress.own_time():
            ranks.start(spec)
    with progress.phase("import_libraries", "import_libraries_ns"):
        builder = loading.import_builder(workload.target, workload.path)
    if not is_eager:
        # Before the model: an optimizer imports a part of it, which would pass for the cost of the model.
        with progress.phase("import_compile_stack", "import_compile_stack_ns"):
            import_compile_stack()
    compilations = (lambda: 0) if is_eager else count_compilations()
    with progress.phase("build_model", "build_model_ns"):
        built = loading.build_workload(builder, workload, progress.device)
        compiled = [name or "the whole" for name, each in functions_of(built) if is_compiled(each)]
        built = replace(built, model_or_fn=as_written(built.model_or_fn))
        control = ranks.led(make_variant(built), is_compiled=False)
        # Where memory does not suffice both sides share the model.
        copies = _COPIES_OF_TRAINING if built.task == TRAINING else 2
        needs_own = (
            not ranks.are_several
            and compiling.needs_own_model(built, spec.strategy)
            and memory.suffices_for(control, progress.device, copies)
        )
        target = own_copy(built) if needs_own else built
    with progress.own_time():
        progress.states.append(State(built))
        if ranks.are_several and not is_eager:
            # What holds a process group cannot be copied.
            numerics.seed_all(spec.seed)
            again = loading.build_workload(builder, workload, progress.device)
            target = replace(again, model_or_fn=as_written(again.model_or_fn))
            progress.states.append(State(target))
    control, target, first = _first_eager(progress, control, target)
    if not is_eager:
        with progress.own_time():
            _note_eager(progress, timers, control)
            if not ranks.are_several:
                target = _parted(progress, control, target, has_own_model=needs_own)
            _make_room(control)
    return Eager(control, first, target, compilations, list(dict.fromkeys(compiled))[:_MOST_NAMED] or None)


def _first_eager(
    progress: Progress, control: Variant, target: Built
) -> tuple[Variant, Built, FirstIteration]:
    """The first eager result. A step that calls `backward()` itself is found out by trying."""
    built, started = control.built, time.monotonic_ns()
    try:
        first = _first_call(progress, control)
    except RuntimeError as error:
        if progress.ranks.are_several or built.task == TRAINING or _NO_GRADIENT not in str(error):
            raise
        tried_ns = time.monotonic_ns() - started
        progress.states[0].restore()
        shares = target is built
        built = replace(built, with_gradients=True)
        control, target = make_variant(built), built if shares else replace(target, with_gradients=True)
        progress.states[:] = [State(built)]
        first = _first_call(progress, control)
        # The try has paid what a process pays once.
        progress.record.cold_start["eager_first_ns"] += tried_ns
    if progress.spec.workload.task_is_open:
        progress.record.task = TRAINING if built.with_gradients else built.task
    return control, target, first


def _first_call(progress: Progress, control: Variant) -> FirstIteration:
    first = FirstIteration()
    with (
        progress.phase("eager_first", "eager_first_ns"),
        grad_context(control.built),
        force_eager(),
    ):
        first.finish(control, progress.device)
    return first


def _note_eager(progress: Progress, timers: Timers, control: Variant) -> None:
    """A few eager calls, which are all that is known of a model whose compilation does not end."""
    record = progress.record
    if progress.spec.purpose != "measure" or record.cold_start["eager_first_ns"] > _EAGER_BEFORE_NS:
        return
    side, began = Side(control.step, timers.side()), time.monotonic_ns()
    with grad_context(control.built), force_eager():
        while len(side.warmup_ns) < _EAGER_CALLS and time.monotonic_ns() - began < _EAGER_BEFORE_NS:
            side.warm_call()
    record.control_warmup_ns = side.warmup_ns


def _parted(progress: Progress, control: Variant, target: Built, *, has_own_model: bool) -> Built:
    """`target` with inputs and state of its own where a step changes them, so that the other side does not;
    unless they cannot be copied, or memory does not suffice.
    """
    (state,) = progress.states
    changed = [name for name in state.changed_names() if not name.startswith("setting")]
    state.restore()
    if has_own_model and any(name.startswith("input") for name in changed):
        with contextlib.suppress(Exception):
            target = own_inputs(target)
    elif (
        changed and not has_own_model and state.is_complete and memory.suffices_for(control, progress.device)
    ):
        with contextlib.suppress(Exception):
            target = apart(control.built)
    if target is not control.built:
        progress.states.append(State(target))
    return target


def _make_room(control: Variant) -> None:
    """Where less memory is left than this process has, it keeps nothing that lies idle while the compiler
    works: eager's gradients, and what was freed.
    """
    free, held = free_memory.available_bytes(), memory.rss_bytes()
    if free is None or held is None or free > held:
        return
    if control.optimizer is not None:
        control.optimizer.zero_grad(set_to_none=True)
    free_memory.give_back()
