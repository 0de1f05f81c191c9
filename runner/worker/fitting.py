"""Whether a workload fits at its size, by one side alone in its process: what a step takes and the peak."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from runner.worker.compiler import compiling
from runner.worker.device.timers import Timers
from runner.worker.step import internals, loading, memory
from runner.worker.step.messages import Specification
from runner.worker.step.steps import grad_context, make_variant

_WARM_CALLS = 3
_TIMED_CALLS = 10


def fit(spec: Specification) -> dict[str, Any]:
    """{"latency_ns": median of a few steps, "peak_bytes": most that was held, with building and compiling;
    None where the system does not tell}.

    On a GPU the peak is what the allocator reserved, on a CPU the resident set of the process.
    """
    device = torch.device(spec.device)
    builder = loading.import_builder(spec.workload.target, spec.workload.path)
    built = loading.build_workload(builder, spec.workload, device)
    built = replace(built, model_or_fn=internals.as_written(built.model_or_fn))
    if spec.strategy.kind == "eager":
        variant = make_variant(built)
    else:
        call = compiling.apply(built, spec.strategy, Path(spec.artifacts))
        if compiling.uses_cudagraphs(spec.strategy, device.type):
            call = compiling.marked(call)
        variant = make_variant(built, call, compiling.optimizer_compiler(spec.strategy))
    timer = Timers(device, flush_l2=False).side()
    with grad_context(variant.built):
        for _ in range(_WARM_CALLS):
            variant.step()
        calls_ns = [timer.once(variant.step) for _ in range(_TIMED_CALLS)]
    on_gpu = device.type == "cuda"
    peak = torch.cuda.max_memory_reserved(device) if on_gpu else memory.peak_rss_bytes()
    return {"latency_ns": round(statistics.median(calls_ns)), "peak_bytes": peak}
