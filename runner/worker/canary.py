"""What a machine can do, whatever is measured on it: a matrix product, a copy in its memory, small launches.

Run before and after a suite. When these move as well, the machine moved and not the software; so their sizes
are fixed, and changing anything here starts new series (the version of these workloads hashes this file).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from compilewatch.runner.worker.device.timers import Timers
from compilewatch.runner.worker.timing.evidence import BlockWatch, canary_ns, host_state
from compilewatch.runner.worker.timing.timer import Step, Timer, Times, headline_of

WARMUP_CALLS = 5
SAMPLES = 15


def gemm(device: torch.device, dtype: torch.dtype, *, size: int) -> Step:
    """The product of two square matrices of `size`: arithmetic, and the clock it runs at."""
    left, right = (torch.ones(size, size, device=device, dtype=dtype) for _ in range(2))
    product = torch.empty_like(left)
    return lambda: torch.mm(left, right, out=product)


def copy(device: torch.device, dtype: torch.dtype, *, size: int) -> Step:
    """`size` elements from one buffer to another, larger than most caches: memory bandwidth."""
    source = torch.ones(size, device=device, dtype=dtype)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def launch(device: torch.device, dtype: torch.dtype, *, size: int) -> Step:
    """`size` operations on one element, which do next to nothing: dispatch and launch overhead."""
    element = torch.zeros(1, device=device, dtype=dtype)

    def launches() -> None:
        for _ in range(size):
            element.add_(1)

    return launches


def measure(
    device: torch.device, workloads: list[dict[str, Any]], pause: Callable[[], object]
) -> dict[str, dict[str, Any]]:
    """Warm-up, samples and host evidence of each of `workloads` by name, as parts of a trial's record.

    `pause` is called before and after each one, so that the state of the device can be read then.
    """
    timers = Timers(device, flush_l2=False)
    by_name = {}
    for workload in workloads:
        make = {"gemm": gemm, "copy": copy, "launch": launch}[workload["target"].partition(":")[2]]
        step = make(device, getattr(torch, workload["dtype"]), **workload["shape"])
        pause()
        timer = timers.side()
        by_name[workload["name"]] = (timer, step, *_measured(timer, step))
    pause()
    headline = headline_of(device.type, "function", None)
    # Once all are timed: tracing leaves the process slower.
    return {
        name: _record(headline, parts, *timers.trace([(timer, step, timer.results(times))])[0])
        for name, (timer, step, parts, times) in by_name.items()
    }


def _measured(timer: Timer, step: Step) -> tuple[dict[str, Any], Times]:
    """Warm-up and state of the host, then the times, as they were taken."""
    warmup = [timer.once(step) for _ in range(WARMUP_CALLS)]
    timer.prepare(step, SAMPLES, 0)
    watch, canary = BlockWatch(), canary_ns()
    watch.begin()
    times = timer.block(step, SAMPLES)
    return {"warmup_ns": warmup, "host_state": host_state([watch.end()], 0, [canary])}, times.times


def _record(headline: str, parts: dict[str, Any], times: Times, side: dict[str, Any]) -> dict[str, Any]:
    """The parts of a trial's record."""
    timed = {name: value for name, value in side.items() if name != "graph_launches"}
    flushed = None if headline == "samples" else False
    timing = {"headline": headline, "flush_l2": flushed, "side": timed, "control": None}
    return parts | times | {"timing": timing}
