"""What a machine can do, whatever is measured on it: a matrix product, a copy in its memory, small launches.

Run before and after a suite. When these move as well, the machine moved and not the software; so their sizes
are fixed, and changing anything here starts new series (the version of these workloads hashes this file).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from runner.worker.clock import Clock, clock_for
from runner.worker.evidence import BlockWatch, canary_ns, host_state

Step = Callable[[], Any]
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
    clock = clock_for(device, flush_l2=False)
    found = {}
    for workload in workloads:
        make = {"gemm": gemm, "copy": copy, "launch": launch}[workload["target"].partition(":")[2]]
        step = make(device, getattr(torch, workload["dtype"]), **workload["shape"])
        pause()
        found[workload["name"]] = _measured(clock, step, on_host=make is launch)
    pause()
    return found


def _measured(clock: Clock, step: Step, *, on_host: bool) -> dict[str, Any]:
    """Launches are timed on the host's clock, which is where their overhead is."""
    warmup = [clock.once(step) for _ in range(WARMUP_CALLS)]
    watch, canary = BlockWatch(), canary_ns()
    watch.begin()
    samples = [clock.once(step) for _ in range(SAMPLES)] if on_host else clock.time_steps(step, SAMPLES)
    return {
        "warmup_ns": warmup,
        "samples_ns": samples,
        "host_state": host_state([watch.end()], 0, [canary]),
    }
