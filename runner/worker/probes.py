"""What only a process on the GPU can say of its timing: agreement with CUPTI and `do_bench`, the effect of
the L2 flush, and a CUDA graph behind the gate. One pass over several workloads, eager, in one process.

What the host takes is timed before anything is traced: tracing leaves the process slower. A gate holds the
device all the same, so gated times take turns with CUPTI's: a busy device grows warm, and its clock falls.
"""

from __future__ import annotations

import contextlib
import importlib
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from compilewatch.runner.worker.device.cuda import CudaDevice
from compilewatch.runner.worker.device.gpu_timer import FEWEST, GateChoice, GpuTimer
from compilewatch.runner.worker.device.interface import Device
from compilewatch.runner.worker.device.tracing import Tracer, median_ns
from compilewatch.runner.worker.failures import describe
from compilewatch.runner.worker.step import loading
from compilewatch.runner.worker.step.messages import Workload
from compilewatch.runner.worker.step.steps import grad_context, make_variant
from compilewatch.runner.worker.timing.timer import Step
from compilewatch.runner.workloads.built import Built

WARMUP_CALLS = 20
SAMPLES = 100
ROUNDS = 20
"""Times that two ways of timing take turns: the clock of a busy GPU falls, and each gives it other pauses."""
ROUND_SAMPLES = 10
FLUSH_ROUNDS = 5
GRAPH_KERNELS = 200
HOST_BOUND = 1.10
"""Pipelined wall time over device time above which a step does not keep the device busy."""
_BENCH_WARMUP_MS = 5
_BENCH_MS = 20

Bench = Callable[[Step], float]
"""Median nanoseconds of a step by another tool."""


def measure(device: torch.device, workloads: Sequence[Workload]) -> dict[str, Any]:
    """Probe each of `workloads` on `device`. A part that fails is there with its `error` and ends nothing."""
    with torch.cuda.device(device):
        plain, flushed = (CudaDevice(device, flush_l2=flush) for flush in (False, True))
        choice, bench = GateChoice(plain), do_bench()
        probed: list[dict[str, Any]] = [{"workload": workload.name} for workload in workloads]
        steps: dict[int, tuple[Step, Built]] = {}
        for number, workload in enumerate(workloads):
            with _noting_errors(probed[number]):
                step, built = _built(workload, device)
                with grad_context(built):
                    probed[number] |= time_step(plain, flushed, choice, step, bench)
                steps[number] = step, built
        l2: dict[str, Any] = {}
        with _noting_errors(l2):
            x = half_of_l2(device)
            l2 |= {"read_bytes": x.nbytes, **flush_effect(plain, flushed, choice, x.amax)}
        graph: dict[str, Any] = {"kernels": GRAPH_KERNELS}
        with _noting_errors(graph):
            replay = captured(device)
            graph["gated_ns"] = Timed(plain, replay, choice, 2 * ROUND_SAMPLES).block().device_ns
        tracer = Tracer(plain)
        for number, (step, built) in steps.items():
            with grad_context(built):
                probed[number] |= beside_tracing(plain, choice, tracer, step)
        if "error" not in graph:
            graph |= observe_step(tracer, replay)
    return {"has_do_bench": bench is not None, "workloads": probed, "l2": l2, "graph": graph}


def _built(workload: Workload, device: torch.device) -> tuple[Step, Built]:
    """(eager step, what it is of)."""
    builder = loading.import_builder(workload.target, workload.path)
    built = loading.build_workload(builder, workload, device)
    return make_variant(built).step, built


@contextlib.contextmanager
def _noting_errors(entry: dict[str, Any]) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever a driver, a tracer or Triton raises
        entry["error"] = describe(error)


def do_bench() -> Bench | None:
    """Triton's own timer, with its flush of the L2 cache; None where Triton is not installed."""
    try:
        testing: Any = importlib.import_module("triton.testing")
    except ImportError:
        return None

    def bench(step: Step) -> float:
        took_ms = testing.do_bench(step, warmup=_BENCH_WARMUP_MS, rep=_BENCH_MS, return_mode="median")
        return float(took_ms) * 1e6

    return bench


@dataclass(frozen=True)
class Block:
    """Medians of one block, in nanoseconds; None of what has fewer than `FEWEST` samples."""

    device_ns: float | None
    wall_pipelined_ns: float | None


class Timed:
    """One warm step under the timer that trials use, in blocks of `size` samples."""

    def __init__(self, device: Device, step: Step, choice: GateChoice, size: int) -> None:
        self._timer, self._step, self._size = GpuTimer(device, choice), step, size
        self.settle()
        self._timer.prepare(step, size, 0)

    def settle(self) -> None:
        """A few steps, each waited for: what is still queued would be paid for by the next sample."""
        for _ in range(WARMUP_CALLS):
            self._timer.once(self._step)

    def block(self) -> Block:
        times = self._timer.block(self._step, self._size).times
        device, wall = times["device_ns"], times["wall_pipelined_ns"]
        return Block(
            statistics.median(device) if len(device) >= FEWEST else None,
            statistics.median(wall) if wall else None,
        )


def time_step(
    plain: Device, flushed: Device, choice: GateChoice, step: Step, bench: Bench | None
) -> dict[str, Any]:
    """Gated device time and pipelined wall time of a step, in nanoseconds; and, where the step keeps the
    device busy, its gated time over that of `bench`, block by block in turns.
    """
    times = Timed(plain, step, choice, SAMPLES).block()
    gated, wall = times.device_ns, times.wall_pipelined_ns
    is_busy = gated is not None and wall is not None and wall <= HOST_BOUND * gated
    ratio = _against(bench, Timed(flushed, step, choice, ROUND_SAMPLES), step) if bench and is_busy else None
    return {"gated_ns": gated, "wall_pipelined_ns": wall, "do_bench_ratio": ratio}


def _against(bench: Bench, timed: Timed, step: Step) -> float | None:
    """Median of gated device time over `bench`'s; None where too few blocks were gated."""
    ratios = []
    for number in range(ROUNDS):
        both: dict[str, float | None] = {}
        for which in ("ours", "theirs")[:: 1 if number % 2 == 0 else -1]:
            # The same work before each: otherwise one of them meets a device that has rested.
            timed.settle()
            both[which] = timed.block().device_ns if which == "ours" else bench(step)
        if both["ours"] and both["theirs"]:
            ratios.append(both["ours"] / both["theirs"])
    return statistics.median(ratios) if len(ratios) >= FEWEST else None


def flush_effect(plain: Device, flushed: Device, choice: GateChoice, step: Step) -> dict[str, Any]:
    """Gated device time of `step` with its input in the L2 cache, and after a flush, in nanoseconds."""
    timed = {
        name: Timed(device, step, choice, SAMPLES)
        for name, device in (("warm_ns", plain), ("cold_ns", flushed))
    }
    samples: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(FLUSH_ROUNDS):
        for name, each in timed.items():
            device_ns = each.block().device_ns
            if device_ns is not None:
                samples[name].append(device_ns)
    return {name: statistics.median(values) if values else None for name, values in samples.items()}


def beside_tracing(device: Device, choice: GateChoice, tracer: Tracer, step: Step) -> dict[str, Any]:
    """`observe_step` twice, between two blocks of gated device time: the mean of both, of either method."""
    timed = Timed(device, step, choice, SAMPLES)
    gated = [timed.block().device_ns]
    observations = [observe_step(tracer, step) for _ in range(2)]
    timed.settle()
    gated.append(timed.block().device_ns)
    times = {"gated_ns": gated, "kernels_ns": [each["kernels_ns"] for each in observations]}
    return observations[0] | observations[1] | {name: _mean(each) for name, each in times.items()}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.mean(known) if len(known) == len(values) else None


def observe_step(tracer: Tracer, step: Step) -> dict[str, Any]:
    """What CUPTI saw of a step: time in which the device did anything, in nanoseconds, launches, streams."""
    (found,), _ = tracer.observe([step], with_times=True)
    fullest, problem = found.fullest, {"error": found.problem} if found.problem else {}
    return problem | {
        "kernels_ns": median_ns(found.busy_ns),
        "launches": None if fullest is None else fullest.launches,
        "graph_launches": None if fullest is None else fullest.graph_launches,
        "streams": None if fullest is None else fullest.streams,
    }


def half_of_l2(device: torch.device) -> torch.Tensor:
    """As much as fills half of the L2 cache: a reduction reads it from there, unless it was overwritten in
    between. Raises RuntimeError where torch does not tell the cache's size.
    """
    cache = int(getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0) or 0)
    if cache == 0:
        raise RuntimeError("torch does not report the size of this device's L2 cache")
    return torch.randn(cache // 2 // 4, device=device)


def captured(device: torch.device, kernels: int = GRAPH_KERNELS) -> Step:
    """Replays a CUDA graph of `kernels` small kernels: one launch, however many there are."""
    x = torch.ones(1 << 16, device=device)

    def chain() -> torch.Tensor:
        y = x
        for _ in range(kernels):
            y = y * 1.0001
        return y

    # What a library does at its first call must not be captured.
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        chain()
    torch.cuda.current_stream(device).wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = chain()

    def replay() -> torch.Tensor:
        graph.replay()
        return output

    return replay
