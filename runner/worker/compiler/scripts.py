"""What the scripts of `reproduce` and `precompile` run; the commands copy it, with what it refers to, into
them.

The first takes one workload, eager and compiled in one process, and prints both latencies. The second
compiles one workload from empty caches, which are written beside it.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import statistics
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from compilewatch.runner.worker.compiler.compiling import compiled_variant, needs_own_model
from compilewatch.runner.worker.compiler.load_caches import (
    ARTIFACTS,
    CACHES,
    LIBRARIES,
    VALID_FOR,
    CacheRefusedError,
    cache_directory,
    load_caches,
    surroundings,
)
from compilewatch.runner.worker.step.internals import force_eager, is_compiled
from compilewatch.runner.worker.step.loading import UnsupportedCaseError, build_workload
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


STEPS = 2
# A library is only taken as built where what it was linked of is there too.
_BUILT = (".so", ".o")


def precompile(spec: dict[str, Any], builder: Callable[..., Any], directory: Path) -> int:
    """Compile the workload of `spec` and write its caches to `directory`, or load them and warm up.

    Returns the exit code: 1 where something was compiled although caches were loaded, 2 where they were
    refused.
    """
    parser = argparse.ArgumentParser(
        description="Compile the workload and write its caches beside this file."
    )
    parser.add_argument("--warm-up", action="store_true", help="Load the caches, then compile and call.")
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")
    options = parser.parse_args()
    configure(spec)
    try:
        if options.warm_up:
            load_caches(directory, spec["device"])
        report = first_steps(spec, builder)
        if not options.warm_up:
            write_caches(directory, spec, report)
    except (CacheRefusedError, UnsupportedCaseError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    print(json.dumps(report) if options.json else in_words(report))  # noqa: T201
    return int(options.warm_up and bool(report["compiled"] or report["built"] or not report["hits"]))


def first_steps(spec: dict[str, Any], builder: Callable[..., Any]) -> dict[str, Any]:
    """Seconds of the first compiled steps; how many graphs came from a cache or were compiled, and how many
    libraries the C++ compiler built.
    """
    device, strategy = torch.device(spec["device"]), read(Strategy, spec["strategy"])
    built = build_workload(builder, read(Workload, spec["workload"]), device)
    target = own_copy(built) if needs_own_model(built, strategy) else built
    step = compiled_variant(target, strategy, Path(), device).step
    there, seconds = libraries(), []
    with grad_context(built):
        for _ in range(STEPS):
            started = time.perf_counter()
            step()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            seconds.append(time.perf_counter() - started)
    return {"first_step_s": seconds[0], "second_step_s": seconds[1], **cache_answers()} | {
        "built": len(libraries() - there)
    }


def libraries() -> set[Path]:
    """What the C++ compiler has built into the caches of this process."""
    return {file for file in cache_directory().rglob("*") if file.suffix in _BUILT}


def cache_answers() -> dict[str, int]:
    """Graphs that a cache of this process gave, and those that it had to compile, by torch's counters."""
    from torch._dynamo.utils import counters

    autograd, graphs = counters["aot_autograd"], counters["inductor"]
    return {
        "hits": max(autograd["autograd_cache_hit"], graphs["fxgraph_cache_hit"]),
        "compiled": graphs["fxgraph_cache_miss"] + graphs["fxgraph_cache_bypass"],
    }


def write_caches(directory: Path, spec: dict[str, Any], report: dict[str, Any]) -> None:
    """Write what this process compiled, and what it is valid for.

    Raises UnsupportedCaseError where this release cannot, or where nothing was compiled.
    """
    save = getattr(torch.compiler, "save_cache_artifacts", None)
    if save is None:
        raise UnsupportedCaseError(
            f"torch {torch.__version__} has no torch.compiler.save_cache_artifacts: use torch 2.7 or newer."
        )
    saved = save()
    if saved is None:
        raise UnsupportedCaseError("Nothing was compiled, so there is no cache to write.")
    caches, buffer = cache_directory(), io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(ARTIFACTS, saved[0])
        for file in sorted(libraries()):
            archive.write(file, LIBRARIES + file.relative_to(caches).as_posix())
    (directory / VALID_FOR).unlink(missing_ok=True)
    (directory / CACHES).write_bytes(buffer.getvalue())
    valid_for = {
        "workload": spec["workload"]["name"],
        "strategy": spec["strategy"]["name"],
        "sha256": hashlib.sha256(buffer.getvalue()).hexdigest(),
        "surroundings": surroundings(spec["device"]),
        **report,
    }
    (directory / VALID_FOR).write_text(json.dumps(valid_for, indent=2) + "\n", encoding="utf-8")


def in_words(report: dict[str, Any]) -> str:
    """One line: what the first step took, and what the caches gave."""
    return (
        f"First step {report['first_step_s']:.3g} s, second {report['second_step_s']:.3g} s; "
        f"graphs from the cache: {report['hits']}, compiled: {report['compiled']}; "
        f"libraries built: {report['built']}."
    )
