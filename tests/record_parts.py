"""The measured parts of a trial record: cold start, memory, compiler facts, numerics, device and host."""

from __future__ import annotations

import random
from typing import Any

from compilewatch.db.records.trial import (
    ColdStart,
    CompilerEvent,
    CompilerFacts,
    DeviceState,
    Failure,
    FailureKind,
    HostState,
    Memory,
    Numerics,
    NumericsStatus,
    PhasesNs,
)

MS = 1_000_000
SECOND = 1_000_000_000


def make_failure(kind: FailureKind | str = FailureKind.OUT_OF_MEMORY, **overrides: Any) -> Failure:
    messages = {
        FailureKind.TIMEOUT: "No result after 600 s.",
        FailureKind.OUT_OF_MEMORY: "CUDA out of memory. Tried to allocate 20.00 GiB.",
        FailureKind.CRASH: "The worker died of signal 11 (SIGSEGV).",
        FailureKind.COMPILE_ERROR: "BackendCompilerFailed: backend='inductor' raised LoweringException",
        FailureKind.WRONG_RESULT: "Compiled output differs from eager: RMSE 0.2 against 0.0001.",
    }
    kind = FailureKind(kind)
    fields: dict[str, Any] = {
        "kind": kind,
        "phase": "first_call",
        "message": messages.get(kind, f"The trial failed: {kind.value}."),
        "log_tail": "Traceback (most recent call last):\n  ...\nRuntimeError: see above\n",
        "exit_code": None if kind is FailureKind.TIMEOUT else 1,
        "signal": 9 if kind is FailureKind.TIMEOUT else None,
    }
    return Failure(**(fields | overrides))


def make_samples(median_ns: float, count: int, *, seed: int = 0, spread: float = 0.01) -> list[int]:
    """`count` positive integers around `median_ns`, uniform within the relative `spread`, seeded."""
    generator = random.Random(seed)
    return [max(1, round(median_ns * (1 + spread * generator.uniform(-1, 1)))) for _ in range(count)]


def make_cold_start(
    latency_ns: float, *, compile_ns: int = 6 * SECOND, compiled: bool = True, **overrides: Any
) -> ColdStart:
    """A cold start whose phases add up; `compile_ns` is what the first calls cost beyond steady ones."""
    step = round(latency_ns)
    if compiled:
        phases = {"dynamo": compile_ns // 10, "aot_autograd": compile_ns // 10, "inductor": compile_ns // 2}
        phases["kernel_compile"] = compile_ns - sum(phases.values())
        phases |= {"isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": step}
        first, calls = sum(phases.values()), 3
    else:
        phases, first, calls = {}, step + 20 * MS, 1
    until_steady = first + (calls - 1) * step
    parts = {"interpreter_ns": 60 * MS, "import_torch_ns": 2 * SECOND, "import_libraries_ns": 0}
    parts |= {"import_compile_stack_ns": 1_800 * MS if compiled else 0, "build_model_ns": 31 * MS}
    fields: dict[str, Any] = {
        **parts,
        "eager_first_ns": 446 * MS if compiled else None,
        "total_ns": sum(parts.values()) + (446 * MS if compiled else 0) + first,
        "first_call_ns": first,
        "calls_until_steady": calls,
        "until_steady_ns": until_steady,
        "process_tree_cpu_ns": sum(parts.values()) + 2 * first,
        "phase_source": "calculate_time_spent" if compiled else None,
        "phases_ns": PhasesNs(**phases) if compiled else None,
    }
    return ColdStart(**(fields | overrides))


def make_compiler_facts(**overrides: Any) -> CompilerFacts:
    fields: dict[str, Any] = {
        "graphs": 1,
        "ops_captured": 412,
        "graph_breaks": [CompilerEvent(reason="call to print", location="model.py:31", count=1)],
        "recompiles": [CompilerEvent(reason="size mismatch at index 1", location="model.py:12", count=2)],
        "skipped_frames": [],
        "recompile_limit_hit": False,
        "cudagraph_skips": [],
        "cudagraph_launches": 0,
    }
    return CompilerFacts(**(fields | overrides))


def make_memory(**overrides: Any) -> Memory:
    fields = {
        "peak_bytes": 1_234_567_890,
        "peak_reserved_bytes": 1_334_567_890,
        "peak_with_compile_bytes": 1_534_567_890,
        "peak_rss_bytes": 3_234_567_890,
        "control_peak_bytes": 1_634_567_890,
    }
    return Memory(**(fields | overrides))


def make_numerics(status: NumericsStatus | str = NumericsStatus.PASS, **overrides: Any) -> Numerics:
    fields: dict[str, Any] = {
        "status": status,
        "reference": "float64",
        "cosine_similarity": 0.99999,
        "max_abs_error": 0.0004,
        "rmse_reference": 0.0001,
        "rmse_result": 0.0001,
        "multiplier": 2.0,
        "tolerance": 0.01,
    }
    return Numerics(**(fields | overrides))


def make_device_state(**overrides: Any) -> DeviceState:
    fields: dict[str, Any] = {
        "sm_clock_mhz": [1980.0, 1980.0, 1980.0],
        "memory_clock_mhz": [3201.0, 3201.0, 3201.0],
        "temperature_c": [41.0, 55.0, 58.0],
        "power_w": [180.0, 410.0, 520.0],
        "utilization_percent": 97.0,
        "throttle_reasons": [],
        "other_processes": 0,
        "energy_mj": 91_234,
        "suspect": False,
        "suspect_reasons": [],
    }
    return DeviceState(**(fields | overrides))


def make_host_state(**overrides: Any) -> HostState:
    fields: dict[str, Any] = {
        "cpu_stall_fraction": 0.006,
        "cpu_over_wall": 0.98,
        "canary_ns": [551_000, 552_000],
        "blocks": 12,
        "blocks_rejected": 0,
    }
    return HostState(**(fields | overrides))
