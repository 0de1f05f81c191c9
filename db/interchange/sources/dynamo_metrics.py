"""What the metrics of PyTorch `benchmarks/dynamo` mean, by name: shared by its CSV and its JSON files.

Definitions: `speedup_experiment`, `warmup` and `check_accuracy` in pytorch/pytorch
benchmarks/dynamo/common.py. `speedup` is eager median over compiled median, `abs_latency` the compiled
median in ms, `compilation_latency` the warm-up of the compiled model less that of eager in s, and the
peaks are GB (10^9 bytes), taken over the warm-up and so with compilation.
"""

from __future__ import annotations

from typing import Any

from compilewatch.db.interchange.files.fields import BYTES_PER_GB, NS_PER_MS, NS_PER_S, Fields
from compilewatch.db.interchange.files.foreign_trials import (
    SPEEDUP_ZERO,
    compile_cost,
    compiler_counts,
    failed,
)
from compilewatch.db.records.trial import (
    ColdStart,
    Failure,
    FailureKind,
    Memory,
    Numerics,
    NumericsStatus,
    Summary,
)

_NUMERICS = {
    "pass": NumericsStatus.PASS,
    "pass_due_to_skip": NumericsStatus.NOT_CHECKED,
    "eager_variation": NumericsStatus.EAGER_TWO_RUNS_DIFFER,
    "eager_two_runs_differ": NumericsStatus.EAGER_TWO_RUNS_DIFFER,
    "fail_accuracy": NumericsStatus.FAIL,
}
_PASSING = {"pass", "pass_due_to_skip", "eager_variation"}
_FAILURES = {
    "fail_accuracy": FailureKind.WRONG_RESULT,
    "OOM": FailureKind.OUT_OF_MEMORY,
    "eager_1st_run_OOM": FailureKind.OUT_OF_MEMORY,
    "eager_2nd_run_OOM": FailureKind.OUT_OF_MEMORY,
    "timeout": FailureKind.TIMEOUT,
    "model_fail_to_load": FailureKind.IMPORT_ERROR,
}
# Columns with a field of their own in the record, or that name the result. All others are kept as metrics.
_CONSUMED = {
    "dev", "name", "batch_size", "tag", "accuracy", "speedup", "abs_latency", "compilation_latency",
    "eager_peak_mem", "dynamo_peak_mem", "calls_captured", "unique_graphs", "graph_breaks",
}  # fmt: skip


def peak_unit_bytes(device: str) -> float:
    """What 1 in a peak memory column is; on the CPU memory_percent x total / 10^9, so a hundredth of a GB."""
    return BYTES_PER_GB / 100 if device == "cpu" else BYTES_PER_GB


def outcome(
    row: Fields, accuracy: str | None, *, device: str, peak_unit: float
) -> tuple[dict[str, Any], Failure | None]:
    """The trial's parts and its failure, from one result's metrics and its accuracy text (if any).

    Raises RecordError for a figure that is no number or out of range.
    """
    numerics = Numerics(status=_NUMERICS.get(accuracy, NumericsStatus.NOT_CHECKED)) if accuracy else None
    failure = _accuracy_failure(accuracy) if accuracy else None
    speedup = row.number("speedup")
    if speedup == 0:
        return {"numerics": numerics}, failure or failed(SPEEDUP_ZERO)
    latency_ms = row.number("abs_latency") or None
    parts = {
        "summary": Summary(
            latency_ns=None if latency_ms is None else row.whole("abs_latency", latency_ms * NS_PER_MS),
            control_latency_ns=None
            if latency_ms is None or speedup is None
            else row.whole("speedup", latency_ms * speedup * NS_PER_MS),
            metrics=row.figures(row.storable(key, key) for key in row.data if key not in _CONSUMED),
        ),
        "cold_start": _cold_start(row),
        "memory": _memory(row, device, peak_unit),
        "compiler": compiler_counts(*map(row.count, ("unique_graphs", "graph_breaks", "calls_captured"))),
        "numerics": numerics,
    }
    return parts, failure


def _accuracy_failure(accuracy: str) -> Failure | None:
    if accuracy in _PASSING:
        return None
    kind = _FAILURES.get(accuracy, FailureKind.CRASH)
    return failed(f"The accuracy run of the same model ended with {accuracy}.", kind)


def _cold_start(row: Fields) -> ColdStart | None:
    """Noise can make the cost negative for a model that compiles nothing; it is then unknown."""
    seconds = row.number("compilation_latency")
    if seconds is None or seconds < 0:
        return None
    return compile_cost(row.whole("compilation_latency", seconds * NS_PER_S))


def _memory(row: Fields, device: str, peak_unit: float) -> Memory | None:
    """Of the GPU's allocator; on the CPU of the whole process. 0 is how the tool writes "not measured"."""
    peak, control = row.scaled("dynamo_peak_mem", peak_unit), row.scaled("eager_peak_mem", peak_unit)
    if not peak and not control:
        return None
    if device == "cpu":
        return Memory(peak_rss_bytes=peak, control_peak_bytes=control)
    return Memory(peak_with_compile_bytes=peak, control_peak_bytes=control)
