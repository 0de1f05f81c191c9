"""What there is before anything is compiled: libraries, model, the first eager results, the state of both
sides.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from compilewatch.runner.worker import numerics
from compilewatch.runner.worker.compiler import compiling
from compilewatch.runner.worker.device.timers import Timers
from compilewatch.runner.worker.progress import Progress
from compilewatch.runner.worker.ranks import threads_of
from compilewatch.runner.worker.step import growth, host, loading, memory
from compilewatch.runner.worker.step.internals import (
    as_written,
    count_compilations,
    force_eager,
    import_compile_stack,
    is_compiled,
)
from compilewatch.runner.worker.step.messages import Channel, Facts, Specification
from compilewatch.runner.worker.step.state import Census, State, functions_of
from compilewatch.runner.worker.step.steps import (
    Variant,
    apart,
    grad_context,
    make_variant,
    own_copy,
    own_inputs,
)
from compilewatch.runner.worker.streams import FirstIteration
from compilewatch.runner.worker.timing.sampling import GrowsError, Side
from compilewatch.runner.workloads.built import TRAINING, Built

_MOST_NAMED = 20
# Between two times that the state is put back in a warm-up, where nobody tried how many work.
_MOST_ON_GPU = 32
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


def note_own_settings(spec: Specification, channel: Channel) -> None:
    """Tell the runner what the workload itself has set in place of `configure`: that is what is measured."""
    own: dict[str, Any] = {}
    if (threads := torch.get_num_threads()) != threads_of(spec):
        own["threads"] = threads
    # Raised where the workload set precision by the newer `fp32_precision`.
    with contextlib.suppress(RuntimeError):
        own["matmul_precision"] = torch.get_float32_matmul_precision()
    settings = spec.settings | own
    if settings != spec.settings:
        machine = host.machine_facts(spec.device, spec.threads)
        channel.send(Facts(machine, host.build_facts(spec.device, settings)))


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
    if workload.ranks is not None:
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
            not ranks.are_grouped
            and compiling.needs_own_model(built, spec.strategy)
            and memory.suffices_for(control, progress.device, copies)
        )
        target = own_copy(built) if needs_own else built
    with progress.own_time():
        progress.states.append(State(built))
        before = progress.states[0].census()
        if ranks.are_grouped and not is_eager:
            # What holds a process group cannot be copied.
            numerics.seed_all(spec.seed)
            again = loading.build_workload(builder, workload, progress.device)
            target = replace(again, model_or_fn=as_written(again.model_or_fn))
            progress.states.append(State(target))
    control, target, first = _first_eager(progress, control, target)
    with progress.own_time():
        note_own_settings(spec, progress.channel)
        if spec.purpose == "measure" and not ranks.are_grouped:
            _look_at_state(progress, timers, control, before)
        if not is_eager:
            if not ranks.are_grouped:
                target = _parted(progress, control, target, has_own_model=needs_own)
            _make_room(control)
    progress.resets += [
        each for each in {id(each): each for each in (control.built, target)}.values() if each.reset
    ]
    return Eager(control, first, target, compilations, list(dict.fromkeys(compiled))[:_MOST_NAMED] or None)


def _first_eager(
    progress: Progress, control: Variant, target: Built
) -> tuple[Variant, Built, FirstIteration]:
    """The first eager result. A step that calls `backward()` itself is found out by trying."""
    built, started = control.built, time.monotonic_ns()
    try:
        first = _first_call(progress, control)
    except RuntimeError as error:
        if progress.ranks.are_grouped or built.task == TRAINING or _NO_GRADIENT not in str(error):
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


def _look_at_state(progress: Progress, timers: Timers, control: Variant, before: Census) -> None:
    """A few eager calls: what they do to the state, and all that is known of the speed of a model whose
    compilation does not end. Raises GrowsError where what grows cannot be put back.
    """
    record, (state,) = progress.record, progress.states
    if not progress.deadline.leaves(growth.MOST_LOOKED * record.cold_start["eager_first_ns"]):
        return
    side = Side(control.step, timers.side())
    # Not one that a first call writes once.
    written = state.keep_written()
    with grad_context(control.built), force_eager():
        found = growth.look(state, before, side.warm_call, record.cold_start["eager_first_ns"])
        if not progress.is_eager:
            record.control_warmup_ns = list(side.warmup_ns)
        progress.found = replace(found, changes=tuple(dict.fromkeys((*found.changes, *written))))
        put_back = progress.put_back(control.built, state)
        if put_back is None:
            return
        put_back()
        if found.growth is not None and found.growth.is_left_in(state.census()):
            raise GrowsError(
                f"Its state grows: {found.growth.text()}, and cannot be put back. Return a Built whose "
                "`reset` puts it back."
            )
        # A device that asserts is lost to the process.
        if progress.device.type == "cpu":
            progress.found = growth.try_further(progress.found, control.step, put_back)
            put_back()
        elif found.most_calls is not None:
            progress.found = replace(progress.found, most_calls=_MOST_ON_GPU)


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
        if has_own_model:
            _take_over_written(control.built, target, changed)
        progress.states.append(State(target))
    return target


def _take_over_written(eager: Built, target: Built, changed: list[str]) -> None:
    """Let `target` have eager's where calls write to weights, which are kept as a first call left them."""
    one, other = eager.model_or_fn, target.model_or_fn
    if (
        not isinstance(one, torch.nn.Module)
        or not isinstance(other, torch.nn.Module)
        or eager.task == TRAINING
    ):
        return
    names = [name.removeprefix("weight ") for name in changed if name.startswith("weight ")]
    with torch.no_grad():
        for name in names:
            other.get_parameter(name).copy_(one.get_parameter(name))


def _make_room(control: Variant) -> None:
    """Where less memory is left than this process has, it keeps nothing that lies idle while the compiler
    works: eager's gradients, and what was freed.
    """
    free, held = host.available_memory_bytes(), memory.rss_bytes()
    if free is None or held is None or free > held:
        return
    if control.optimizer is not None:
        control.optimizer.zero_grad(set_to_none=True)
    host.give_back_memory()
