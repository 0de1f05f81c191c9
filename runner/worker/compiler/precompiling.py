"""What a precompile script runs: one workload compiled from empty caches, which are written beside it.

`compilewatch precompile` copies this, with what it refers to, into the script.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
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
from compilewatch.runner.worker.compiler.reproduction import configure
from compilewatch.runner.worker.step.loading import UnsupportedCaseError, build_workload
from compilewatch.runner.worker.step.messages import Strategy, Workload, read
from compilewatch.runner.worker.step.steps import grad_context, own_copy

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
