"""Why a step takes its time: launches, kernels, operators and what the host does beside them.

Runs in a process of its own, since a profiler slows what it watches. On a GPU the device is watched in one
pass and the host in another, so that the cost of noting every operator leaves no gaps in the device's time.
"""

from __future__ import annotations

import math
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from compilewatch.runner.worker.step.internals import watch_operators
from compilewatch.runner.worker.step.steps import tensors_of

Step = Callable[[], Any]
Noted = Callable[[Step], tuple[Sequence[Any], bool]]
"""What the device itself notes of a step, as torch's profiler gives it, and whether that is all."""

STEPS = 5
WARMUP_STEPS = 5
"""CUDA graphs record at the second and third call, and everything is compiled by then."""
_LONGEST = 30
_MARK = "compilewatch step"
_GENERATED = "generated code"
_REGION = "Torch-Compiled Region"

_OPERATOR = re.compile(r"^(?!autograd::)[A-Za-z_]\w*::")
# torch/_inductor/output_code.py: the region around the code of one graph, named with its cache key.
_GENERATED_REGION = re.compile(r"Call CompiledFxGraph|^inductor::|^CompiledFxGraph")
# Calls of the CUDA runtime and driver, and of HIP, that put work on the device's queue.
LAUNCH = re.compile(
    r"^(cudaLaunch\w*Kernel\w*|cuLaunchKernel\w*|cudaGraphLaunch\w*|hip\w*LaunchKernel\w*|hipGraphLaunch\w*)"
)
_NO_KERNEL = re.compile(r"^(Memcpy|Memset|gpu_user_annotation)", re.IGNORECASE)
_MATRIX_OPERATOR = re.compile(
    r"::_?(?!upsample)(\w*(mm|mv)(_\w+)?|\w*(conv|linear|matmul|scaled_dot_product|_attention|lstm|rnn)\w*)$"
)
# Names of cuBLAS, cuDNN, CUTLASS, FlashAttention, rocBLAS and of Inductor's Triton templates.
_MATRIX_KERNEL = re.compile(
    r"gemm|gemv|cutlass|cublas|nvjet|xmma|conv(?!ert)|wgrad|dgrad|fmha|flash|attention|triton_tem|Cijk",
    re.IGNORECASE,
)


def profile_side(step: Step, device: torch.device, noted: Noted | None = None) -> dict[str, Any]:
    """`ProfileSide` of the record for one variant's warm step; `noted` of a GPU."""
    for _ in range(WARMUP_STEPS):
        step()
    facts = _host_facts(step, device) | {"copied_bytes": _copied_bytes(step, device)}
    return facts if noted is None else facts | _device_facts(step, lambda: _wait(device), noted)


def _wait(device: torch.device) -> None:
    if device.type != "cpu":
        torch.cuda.synchronize(device)


def _host_facts(step: Step, device: torch.device) -> dict[str, Any]:
    """Operators and Python; on a CPU also what takes longest."""
    _wait(device)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(STEPS):
            with record_function(_MARK):
                step()
            _wait(device)
    events = list(profiler.events() or ())
    marks = [event for event in events if event.name == _MARK]
    inside = [event for event in events if event.name != _MARK and _within(event, marks)]
    outermost = _operators(inside)
    own_us: dict[str, list[float]] = defaultdict(list)
    by_step: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(marks))
    for event in inside:
        name = plain_name(event.name)
        own_us[name].append(event.self_cpu_time_total)
        by_step[name][_step_of(event, marks)] += event.self_cpu_time_total
    typical_us = {name: statistics.median(steps) for name, steps in by_step.items()}
    return {
        "step_ns": round(statistics.median(_us(mark) for mark in marks) * 1000),
        "operators": len(outermost) / STEPS,
        "python_ns": _python_ns(marks, inside, outermost),
        "matrix_fraction": _share(own_us, _MATRIX_OPERATOR),
        "top": _longest(typical_us, own_us),
    }


def compiled_shares(own: list[Any], eager: list[Any], *, on_cpu: bool) -> dict[str, float | None]:
    """How much of a step runs compiled, by the events of a warm one and of eager's (`events_of`): of the
    operators that eager calls, and of the host's time in operators and generated code (`CompilerFacts`).

    What a graph break, a limit or a disabled function leaves to Python calls its operators outside of
    generated code. Before torch 2.9, and of backends that generate none, nothing is known.
    """
    called = len(_operators(eager))
    generated = [event for event in own if _GENERATED_REGION.search(event.name)]
    if not called or (not generated and any(event.name.startswith(_REGION) for event in own)):
        return {"compiled_share": None, "compiled_time_share": None}
    outside = [event for event in _operators(own) if not _within(event, generated)]
    inside_us = union_us(map(interval, generated))
    both_us = union_us(map(interval, generated + outside))
    return {
        "compiled_share": max(0.0, 1.0 - len(outside) / called),
        "compiled_time_share": inside_us / both_us if both_us and on_cpu else None,
    }


def events_of(step: Step, device: torch.device, *, record_shapes: bool = False) -> list[Any]:
    """The host's events of one step, as torch's profiler gives them."""
    _wait(device)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=record_shapes) as profiler:
        step()
        _wait(device)
    return list(profiler.events() or ())


def _operators(events: list[Any]) -> list[Any]:
    """Those that no other operator called."""
    return [event for event in events if is_operator(event.name) and not _has_operator_above(event)]


# What the profiler calls dtypes, by their bytes.
_WIDTHS = {"bool": 1, "signed char": 1, "unsigned char": 1, "short int": 2, "int": 4, "long int": 8}
_WIDTHS |= {"c10::Half": 2, "c10::BFloat16": 2, "float": 4, "double": 8}
_WIDTHS |= {f"c10::Float8_{name}": 1 for name in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz")}


def _copied_bytes(step: Step, device: torch.device) -> int | None:
    """What `copy_` reads and writes in one step: every copy and cast ends there. In a pass of its own, since
    noting shapes takes time.
    """
    events = events_of(step, device, record_shapes=True)
    if any(_GENERATED_REGION.search(event.name) or event.name.startswith(_REGION) for event in events):
        return None
    copied = 0
    for event in events:
        if event.name == "aten::copy_":
            dtypes = getattr(event, "input_dtypes", None) or []
            sides = list(zip(event.input_shapes, dtypes, strict=False))[:2]
            if len(sides) < 2 or any(dtype not in _WIDTHS for _, dtype in sides):
                return None
            copied += sum(math.prod(shape) * _WIDTHS[dtype] for shape, dtype in sides)
    return copied


def _step_of(event: Any, marks: list[Any]) -> int:
    return next(number for number, mark in enumerate(marks) if _within(event, [mark]))


def _python_ns(marks: list[Any], inside: list[Any], outermost: list[Any]) -> int | None:
    """Host time of a step outside of operators and of generated code; None where a compiled region does not
    show the generated code in it (before 2.9).
    """
    generated = [event for event in inside if _GENERATED_REGION.search(event.name)]
    if not generated and any(event.name.startswith(_REGION) for event in inside):
        return None
    covered = outermost + generated
    python_us = [
        _us(mark) - union_us(interval(event) for event in covered if _within(event, [mark])) for mark in marks
    ]
    return round(max(0.0, statistics.median(python_us)) * 1000)


def _device_facts(step: Step, wait: Callable[[], None], noted: Noted) -> dict[str, Any]:
    """Launches, kernels, and the share of the time in which the device did anything; of the device nothing
    where some may not have been noted.
    """
    took_ns = []

    def steps() -> None:
        started = time.perf_counter_ns()
        for _ in range(STEPS):
            step()
        wait()
        took_ns.append(time.perf_counter_ns() - started)

    events, is_whole = noted(steps)
    work = device_work(events) if is_whole else []
    kernels = [event for event in work if not _NO_KERNEL.search(event.name)]
    launches = [event for event in events if on_host(event) and LAUNCH.search(event.name)]
    spent_us: dict[str, list[float]] = defaultdict(list)
    for event in work:
        spent_us[event.name].append(_us(event))
    intervals = [interval(event) for event in work]
    return {
        "step_ns": round(statistics.median(took_ns) / STEPS),
        "launches": len(launches) / STEPS if launches else None,
        "kernels": len(kernels) / STEPS if work else None,
        "device_busy_fraction": busy_fraction(intervals),
        "launch_ns": round(sum(_us(event) for event in launches) * 1000 / STEPS) if launches else None,
        "matrix_fraction": _share(spent_us, _MATRIX_KERNEL),
        "top": _longest({name: sum(us) / STEPS for name, us in spent_us.items()}, spent_us),
    }


def is_operator(name: str) -> bool:
    """Whether an event is an operator ("aten::addmm", "mylib::fused"); autograd's own regions are not."""
    return _OPERATOR.match(name) is not None


def plain_name(name: str) -> str:
    """An event's name without what differs from one process to the next."""
    if _GENERATED_REGION.search(name):
        return _GENERATED
    return _REGION if name.startswith(_REGION) else name


def union_us(intervals: Iterable[tuple[float, float]]) -> float:
    """Length of what the intervals cover together; what several cover counts once."""
    covered, end = 0.0, float("-inf")
    for begin, stop in sorted(intervals):
        covered += max(0.0, stop - max(begin, end))
        end = max(end, stop)
    return covered


def device_work(events: Iterable[Any]) -> list[Any]:
    """What the device did: kernels, copies, fills. A region that the host names is drawn on the device's time
    line too, and is no work of it.
    """
    return [event for event in events if not on_host(event) and not event.is_user_annotation]


def busy_fraction(intervals: list[tuple[float, float]]) -> float | None:
    """The share of the time from the first of the device's work to the last in which it did anything; what
    the profiler itself needs around them is no idle device. None where it did nothing.
    """
    if not intervals:
        return None
    span = max(end for _, end in intervals) - min(begin for begin, _ in intervals)
    return min(1.0, union_us(intervals) / span) if span > 0 else 1.0


def on_host(event: Any) -> bool:
    """Whether a profiler's event is of the host's time line."""
    return bool(event.device_type.name == "CPU")


def _us(event: Any) -> float:
    return float(event.time_range.end - event.time_range.start)


def interval(event: Any) -> tuple[float, float]:
    """Begin and end in microseconds."""
    return float(event.time_range.start), float(event.time_range.end)


def _within(event: Any, marks: list[Any]) -> bool:
    """By time, not by nesting: on a GPU a backward runs in a thread of its own."""
    start, end = interval(event)
    return any(mark.time_range.start <= start and end <= mark.time_range.end for mark in marks)


def _has_operator_above(event: Any) -> bool:
    above = event.cpu_parent
    while above is not None:
        if is_operator(above.name):
            return True
        above = above.cpu_parent
    return False


def _longest(step_us: dict[str, float], calls_us: dict[str, list[float]]) -> list[dict[str, Any]]:
    """`step_us` is each name's own time in a step: of the host the median over steps, which one disturbed
    step leaves as it is, of a device the mean.
    """
    ordered = sorted(step_us.items(), key=lambda item: -item[1])[:_LONGEST]
    return [
        {"name": name, "calls": len(calls_us[name]) / STEPS, "self_ns": round(max(0.0, us) * 1000)}
        for name, us in ordered
    ]


def _share(us_by_name: dict[str, list[float]], pattern: re.Pattern[str]) -> float | None:
    """The share of the names that fit, in the time of all; None where nothing took any."""
    total = sum(sum(us) for us in us_by_name.values())
    if total <= 0:
        return None
    fitting = sum(sum(us) for name, us in us_by_name.items() if pattern.search(name))
    return min(1.0, max(0.0, fitting / total))


def counted(step: Step) -> dict[str, int | None]:
    """`flops` and `bytes` of one step, operator by operator; so only of what is not compiled.

    `bytes`: every input and output of every operator that is no view, once per call. An upper bound of the
    traffic, since caches and fusion save some of it.
    """
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        step()
    moved = 0

    def note(arguments: Any, result: Any) -> None:
        nonlocal moved
        moved += sum(_storage_bytes(tensor) for tensor in tensors_of([arguments, result]))

    watched = watch_operators(step, note)
    return {"flops": counter.get_total_flops(), "bytes": moved if watched else None}


def _storage_bytes(tensor: torch.Tensor) -> int:
    """Bytes of a tensor's elements; an expanded one repeats those of its storage."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())
