"""What a reproduction script runs: one workload, eager and compiled in one process, both latencies printed.

`compilewatch reproduce --script` copies this, with what it refers to, into the script.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from compilewatch.runner.worker.compiler.compiling import compiled_variant, needs_own_model
from compilewatch.runner.worker.internals.stance import force_eager, is_compiled
from compilewatch.runner.worker.step.loading import build_workload
from compilewatch.runner.worker.step.messages import Strategy, Workload, read
from compilewatch.runner.worker.step.state import functions_of
from compilewatch.runner.worker.step.steps import Step, grad_context, make_variant, own_copy, tensors_of
from compilewatch.runner.workloads.built import Built

WARMUP_CALLS = 10
ROUNDS = 10


def reproduce(spec: dict[str, Any], builder: Callable[..., Any]) -> None:
    """Build the workload of `spec`, measure it and print what `spec["stored"]` says beside it."""
    configure(spec)
    bound = os.sched_getaffinity(0)
    os.sched_setaffinity(0, spec["cpus"])
    device, strategy = torch.device(spec["device"]), read(Strategy, spec["strategy"])
    built = build_workload(builder, read(Workload, spec["workload"]), device)
    target = own_copy(built) if needs_own_model(built, strategy) else built
    steps: dict[str, Step] = {"eager": as_written(built, make_variant(built).step)}
    with grad_context(built):
        eager_output = steps["eager"]()
        if strategy.kind != "eager":
            started = time.perf_counter_ns()
            artifacts = Path(tempfile.mkdtemp()) / "artifacts"
            compiled = compiled_variant(target, strategy, artifacts, device).step
            compiled_output = compiled()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            print(f"first compiled call: {(time.perf_counter_ns() - started) / 1e9:.3g} s")  # noqa: T201
            print(f"largest difference:  {largest_difference(eager_output, compiled_output):.3g}")  # noqa: T201
            steps["compiled"] = compiled
        os.sched_setaffinity(0, bound)
        samples = alternate(device, steps, spec["samples"])
    show(samples, spec["stored"])


def as_written(built: Built, step: Step) -> Step:
    """`step` without what the workload compiles itself, where it does."""
    if not any(is_compiled(each) for _, each in functions_of(built)):
        return step

    def run() -> Any:
        with force_eager():
            return step()

    return run


def configure(spec: dict[str, Any]) -> None:
    """Pin threads, matmul precision and seed as the trial had them."""
    torch.set_num_threads(spec["threads"])
    if spec["matmul_precision"] is not None:
        torch.set_float32_matmul_precision(spec["matmul_precision"])
    torch.backends.cudnn.benchmark = False
    torch.manual_seed(spec["seed"])


def alternate(device: torch.device, steps: dict[str, Step], count: int) -> dict[str, list[int]]:
    """About `count` samples of each step in nanoseconds, in blocks that take turns after a warm-up."""
    for step in steps.values():
        for _ in range(WARMUP_CALLS):
            once(device, step)
    samples: dict[str, list[int]] = {name: [] for name in steps}
    for number in range(ROUNDS):
        for name in list(steps)[:: 1 if number % 2 == 0 else -1]:
            samples[name] += [once(device, steps[name]) for _ in range(max(1, count // ROUNDS))]
    return samples


def once(device: torch.device, step: Step) -> int:
    """Wall time of one step until the device has finished it; on a GPU with its L2 cache overwritten."""
    if device.type == "cuda":
        size = getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0) or 64 * 1024 * 1024
        torch.zeros(2 * int(size), dtype=torch.int8, device=device)
        torch.cuda.synchronize(device)
    started = time.perf_counter_ns()
    step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter_ns() - started


def largest_difference(one: Any, other: Any) -> float:
    """Of two outputs, over all their floating-point tensors; the loss, for a training step."""
    pairs = zip(tensors_of(one), tensors_of(other), strict=True)
    return max(
        (float((a.double() - b.double()).abs().max()) for a, b in pairs if a.is_floating_point()), default=0.0
    )


def show(samples: dict[str, list[int]], stored: dict[str, list[float]]) -> None:
    """One line per side, then the speedup: now, and what the trial had, of which 90 % in what range."""
    medians = {name: statistics.median(values) for name, values in samples.items()}
    for name, median in medians.items():
        print(f"{name + ':':<10}{median / 1e6:.4g} ms{beside(stored.get(name), 1e-6, 'ms')}")  # noqa: T201
    if "compiled" in medians:
        speedup = medians["eager"] / medians["compiled"]
        print(f"speedup:  {speedup:.3g} x{beside(stored.get('speedup'), 1, 'x')}")  # noqa: T201


def beside(stored: list[float] | None, factor: float, unit: str) -> str:
    """ " (stored: 1.2 ms, 1.1 to 1.4)" of a median and the ends of its samples' range."""
    if stored is None:
        return ""
    median, low, high = (value * factor for value in stored)
    return f" (stored: {median:.4g} {unit}, {low:.4g} to {high:.4g})"
