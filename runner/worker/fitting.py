"""One side alone in its process: whether the workload fits at its size, and what its memory is held for."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from compilewatch.runner.worker import held
from compilewatch.runner.worker.compiler import compiling
from compilewatch.runner.worker.device.timers import Timers
from compilewatch.runner.worker.internals.compiler import import_compile_stack, watch_partitions
from compilewatch.runner.worker.internals.stance import as_written
from compilewatch.runner.worker.step import loading, memory
from compilewatch.runner.worker.step.messages import Specification
from compilewatch.runner.worker.step.steps import Variant, grad_context, make_variant

_WARM_CALLS = 3
_TIMED_CALLS = 10


def fit(spec: Specification) -> dict[str, Any]:
    """{"latency_ns": median of a few steps, "peak_bytes": most that was held, with building and compiling;
    None where the system does not tell}.

    On a GPU the peak is what the allocator reserved, on a CPU the resident set of the process.
    """
    device = torch.device(spec.device)
    latency_ns = _latency_ns(_variant(spec, device), device)
    on_gpu = device.type == "cuda"
    peak = torch.cuda.max_memory_reserved(device) if on_gpu else memory.peak_rss_bytes()
    return {"latency_ns": latency_ns, "peak_bytes": peak}


def hold(spec: Specification) -> dict[str, Any]:
    """{"latency_ns": as `fit`, "memory": `Memory` of the record, of a step alone and what it is held for}."""
    device, partitions = torch.device(spec.device), held.Partitions()
    is_eager = spec.strategy.kind == "eager"
    if not is_eager:
        # What is not imported cannot be watched.
        import_compile_stack()
    with watch_partitions(partitions.note):
        variant = _variant(spec, device)
        latency_ns = _latency_ns(variant, device)
    with grad_context(variant.built):
        found = {
            "peak_bytes": memory.step_peak(variant, device, [])["bytes"],
            "saved": held.saved_for_backward(variant, None if is_eager else partitions),
            "peak_blocks": held.blocks_at_peak(variant, device),
        }
    return {"latency_ns": latency_ns, "memory": found}


def _variant(spec: Specification, device: torch.device) -> Variant:
    """What `spec` measures; a compiled one compiles at its first call."""
    builder = loading.import_builder(spec.workload.target, spec.workload.path)
    built = loading.build_workload(builder, spec.workload, device)
    built = replace(built, model_or_fn=as_written(built.model_or_fn))
    if spec.strategy.kind == "eager":
        return make_variant(built)
    return compiling.compiled_variant(built, spec.strategy, Path(spec.artifacts), device)


def _latency_ns(variant: Variant, device: torch.device) -> int:
    """Median of a few steps after a few."""
    timer = Timers(device, flush_l2=False).side()
    with grad_context(variant.built):
        for _ in range(_WARM_CALLS):
            variant.step()
        return round(statistics.median(timer.once(variant.step) for _ in range(_TIMED_CALLS)))
