"""Compiler facts, memory, numerics and a variant beside float32, looked at once everything is timed."""

from __future__ import annotations

import dataclasses
import math
import statistics
import traceback
from collections.abc import Callable
from typing import Any

import torch

from compilewatch.runner.worker import numerics, streams
from compilewatch.runner.worker.cold_start import Started
from compilewatch.runner.worker.device.timers import Timers
from compilewatch.runner.worker.failures import WrongResultError, is_ours
from compilewatch.runner.worker.held_memory import Partitions, blocks_at_peak, saved_for_backward
from compilewatch.runner.worker.numerics import seed_all
from compilewatch.runner.worker.progress import Progress
from compilewatch.runner.worker.step import loading, memory, profiling
from compilewatch.runner.worker.step.internals import as_written, force_eager
from compilewatch.runner.worker.step.steps import Variant, first_batch, grad_context, output_of, tensors_of
from compilewatch.runner.worker.timed import Timed
from compilewatch.runner.worker.timing.sampling import Side
from compilewatch.runner.workloads.built import Built

_STEPS = 3
_ITERATIONS = 3
_Held = dict[str, tuple[Side, Variant, Partitions | None]]
"""A side by the name in the record of what its memory is held for."""


def inspect(progress: Progress, timers: Timers, started: Started, timed: Timed) -> None:
    """Fill the record with them. Raises WrongResultError."""
    record, sides, compiled = progress.record, timed.sides, started.compiled
    control, subject = started.eager.control, started.subject
    facts = started.compiler_facts(timed.cudagraph_launches)
    record.stream = _stream_facts(started, timed)
    if record.stream is not None:
        record.stream |= _waiting(
            progress, timed, {"": (sides.own, subject), "control_": (sides.control, control)}
        )
    progress.enter("memory")
    timers.release()
    held: _Held = {"saved": (sides.own, subject, None if compiled is None else compiled.partitions)}
    _come_to_length(progress, timed, subject)
    own = _peak_of(progress, sides.own, subject, [] if compiled is None else [control])
    control_peak = None
    if sides.control is not None:
        control_peak = _peak_of(progress, sides.control, control, [subject], owns_graphs=False)
        held["control_saved"] = (sides.control, control, None)
    peaks = [memory.peak_rss_bytes(), None if compiled is None else compiled.peak_rss_before]
    record.compiler = None if facts is None else facts | _compiled_shares(progress, timed, subject)
    record.memory = memory.memory_record(
        own,
        control_peak,
        with_compile=None if compiled is None else compiled.peak_bytes,
        peak_rss=max((peak for peak in peaks if peak is not None), default=None),
        growth=timed.growth,
        # Of ranks nothing: a backward pass alone would wait for the others for ever.
        saved={} if progress.ranks.are_grouped else _held_of(progress, held),
    )
    if compiled is not None:
        _check_numerics(progress, control, subject)


def _come_to_length(progress: Progress, timed: Timed, subject: Variant) -> None:
    """Call both sides as often as before their timed calls, so that memory is that of the same length."""
    sides = timed.sides.in_order
    needed_ns = sum((timed.untimed_calls + _STEPS) * side.latency_ns() for side in sides)
    if timed.untimed_calls and progress.deadline.leaves(needed_ns):
        for side in sides:
            side.start_over()
            with grad_context(subject.built), side.around():
                for _ in range(timed.untimed_calls):
                    side.step()


def _check_numerics(progress: Progress, control: Variant, subject: Variant) -> None:
    record, spec = progress.record, progress.spec
    if progress.ranks.are_grouped:
        # The check calls models in ways of its own, which the other ranks would not take with it.
        record.numerics = {"status": "not_checked", "reason": "steps of a process group"}
        return
    progress.enter("numerics")
    record.numerics, wrong = numerics.check(
        control,
        subject,
        (progress.states[0], progress.states[-1]),
        spec.seed,
        draws_as_eager=bool(spec.strategy.options.get("fallback_random")),
        deadline=progress.deadline,
    )
    if wrong is not None:
        raise WrongResultError(wrong)
    if spec.workload.variant not in (None, "float32") and record.numerics["status"] == "pass":
        record.numerics["float32_error"] = error_of(progress, subject)


def _stream_facts(started: Started, timed: Timed) -> dict[str, Any] | None:
    built, eager, name = started.subject.built, started.eager, timed.headline + "_ns"
    samples, control = timed.sides.own.times[name], timed.sides.control
    if started.compiled is None or control is None:
        return streams.facts(built, eager.first, samples, None, [])
    return streams.facts(built, started.compiled.first, samples, eager.first, control.times[name])


def _waiting(
    progress: Progress, timed: Timed, sides: dict[str, tuple[Side | None, Variant]]
) -> dict[str, float]:
    """Of each side by its prefix in the record how long an iteration takes and how much of it waits for
    batches: medians; nothing where the deadline leaves no time, and of ranks.
    """
    found: dict[str, float] = {}
    needed_ns = sum(side.latency_ns() for side in timed.sides.in_order)
    if progress.ranks.are_grouped or not progress.deadline.leaves(_ITERATIONS * needed_ns):
        return found
    for prefix, (side, variant) in sides.items():
        if side is not None:
            with grad_context(variant.built), side.around():
                taken = [streams.waited_ns(variant, progress.device) for _ in range(_ITERATIONS)]
            whole, waited = (statistics.median(each) for each in zip(*taken, strict=True))
            found |= {f"{prefix}iteration_ns": whole, f"{prefix}data_ns": waited}
    return found


def _peak_of(
    progress: Progress, side: Side, variant: Variant, others: list[Variant], *, owns_graphs: bool = True
) -> dict[str, int | None]:
    """Peak memory of a step; missing where it cannot be read, or not before the deadline."""
    if progress.deadline.leaves(_STEPS * side.latency_ns()):
        try:
            with side.around():
                return memory.step_peak(variant, progress.device, others, owns_graphs=owns_graphs)
        except Exception as error:
            if not is_ours(error):
                raise
            traceback.print_exc()
    return {"bytes": None, "reserved": None, "pools": None}


def _compiled_shares(progress: Progress, timed: Timed, subject: Variant) -> dict[str, float | None]:
    """How much of a step runs compiled, at the length that was timed: a later call may be one too many. Of
    ranks, and where time is short, it stays unknown.
    """
    sides, control = timed.sides, timed.sides.control
    needed_ns = sum((timed.untimed_calls + _STEPS) * side.latency_ns() for side in sides.in_order)
    if control is None or progress.ranks.are_grouped or not progress.deadline.leaves(needed_ns):
        return {}
    _come_to_length(progress, timed, subject)
    try:
        with grad_context(subject.built):
            own, eager = (
                profiling.events_of(side.step_apart(), progress.device) for side in (sides.own, control)
            )
        return profiling.compiled_shares(own, eager, on_cpu=progress.device.type == "cpu")
    except Exception as error:
        if not is_ours(error):
            raise
        traceback.print_exc()
        return {}


def _held_of(progress: Progress, sides: _Held) -> dict[str, Any]:
    """What each side's memory is held for, by its name in the record, and the blocks of the first one's peak;
    missing where it cannot be read, or not before the deadline.
    """
    found: dict[str, Any] = {}
    for number, (name, (side, variant, partitions)) in enumerate(sides.items()):
        has_room = memory.suffices_for(variant, progress.device, 1)
        if not (has_room and progress.deadline.leaves(_STEPS * side.latency_ns())):
            break
        try:
            with grad_context(variant.built), side.around():
                found[name] = saved_for_backward(variant, partitions)
                if number == 0:
                    found["peak_blocks"] = blocks_at_peak(variant, progress.device)
        except Exception:  # noqa: BLE001 - functions of torch.func refuse hooks, and the trial is right
            traceback.print_exc()
    return found


def error_of(progress: Progress, subject: Variant) -> float | None:
    """How far the outputs of `subject` are from those of the same model and inputs in float32, by eager: the
    root mean square of the differences over that of the outputs. None where they cannot be compared.
    """
    spec = progress.spec
    workload = dataclasses.replace(spec.workload, variant=None, dtype="float32")
    seed_all(spec.seed)
    built = loading.build_workload(
        loading.import_builder(workload.target, workload.path), workload, progress.device
    )
    with grad_context(built), force_eager():
        seed_all(spec.seed)
        exact = _outputs(built, as_written(built.model_or_fn))
    with grad_context(subject.built):
        seed_all(spec.seed)
        own = _outputs(subject.built, subject.call)
    if not exact or [each.shape for each in exact] != [each.shape for each in own]:
        return None
    size = math.sqrt(sum(float(each.square().sum()) for each in exact))
    off = math.sqrt(sum(float((one - other).square().sum()) for one, other in zip(own, exact, strict=True)))
    relative = off / size if size else math.nan
    return relative if math.isfinite(relative) else None


def _outputs(built: Built, call: Callable[..., Any]) -> list[torch.Tensor]:
    """The floating-point tensors of one forward pass, as float64."""
    found = tensors_of(output_of(built, call, first_batch(built)))
    return [each.detach().double() for each in found if each.is_floating_point()]
