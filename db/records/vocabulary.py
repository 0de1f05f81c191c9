"""The words of a judgement: metrics, verdicts, cause classes."""

from __future__ import annotations

from enum import StrEnum

SOURCE_METRIC = "metrics."
"""Before the name that a source gave a figure of its own, such as `metrics.p99_ttft_ms`."""


class Metric(StrEnum):
    """What is judged, or has a history. `numerics` is the pass set: finished with the right numbers.

    Latency is the headline, what people wait for. Device time decides whether the compiled code changed,
    host issue time whether launching, guards or Python did. Beside the members a figure that an imported
    result states under a name of its source is one, as `Metric("metrics.NAME")`: judged, without a history.
    """

    LATENCY = "latency"
    SPEEDUP = "speedup"
    THROUGHPUT = "throughput"
    LATENCY_P95 = "latency_p95"
    LATENCY_P99 = "latency_p99"
    DEVICE_TIME = "device_time"
    ISSUE_TIME = "issue_time"
    DEVICE_SPEEDUP = "device_speedup"
    WALL_SYNC = "wall_sync"
    WALL_PIPELINED = "wall_pipelined"
    ISSUE_SPEEDUP = "issue_speedup"
    WALL_SYNC_SPEEDUP = "wall_sync_speedup"
    WALL_PIPELINED_SPEEDUP = "wall_pipelined_speedup"
    COMPILE_COST = "compile_cost"
    PEAK_MEMORY = "peak_memory"
    ENERGY = "energy"
    BREAK_EVEN = "break_even"
    TIME_TO_FIRST_RESULT = "time_to_first_result"
    COLD_START_CPU = "cold_start_cpu"
    COMPILE_CPU = "compile_cpu"
    COMPILE_INSTRUCTIONS = "compile_instructions"
    GRAPH_BREAKS = "graph_breaks"
    RECOMPILES = "recompiles"
    CAPTURED_OPERATIONS = "captured_operations"
    RECOMPILE_LIMIT_HIT = "recompile_limit_hit"
    COMPILED_SHARE = "compiled_share"
    COMPILED_TIME_SHARE = "compiled_time_share"
    CUDAGRAPH_LAUNCHES = "cudagraph_launches"
    CUDAGRAPH_SKIPS = "cudagraph_skips"
    CACHE_BYPASSES = "cache_bypasses"
    CACHE_HIT_RATE = "cache_hit_rate"
    COMPILES_AFTER_READY = "compiles_after_ready"
    GPU_UTILIZATION = "gpu_utilization"
    NUMERICS = "numerics"

    @classmethod
    def _missing_(cls, value: object) -> Metric | None:
        if not isinstance(value, str) or not value.startswith(SOURCE_METRIC):
            return None
        metric = str.__new__(cls, value)
        metric._name_ = metric._value_ = value
        return metric


class Verdict(StrEnum):
    """What a comparison says of a metric of a case, or of the whole. Unchanged is shown, not assumed."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPARABLE = "not comparable"
    MISSING = "missing"


class CauseClass(StrEnum):
    """What a change is put down to: the compiler's code, one's own code, the host that issues it, what eager
    shares, the machine, other settings, chance.
    """

    COMPILER = "compiler"
    CODE = "code"
    HOST = "host"
    EAGER = "eager"
    MACHINE = "machine"
    METHOD = "method"
    NOISE = "noise"


class WhoMoved(StrEnum):
    """Whose latency changed by more than its own noise."""

    EAGER = "eager"
    COMPILED = "compiled"
    BOTH = "both"
    UNCLEAR = "unclear"


class Bound(StrEnum):
    """What a step on a GPU waits for: the host that issues it, or the device that runs it."""

    HOST = "host"
    DEVICE = "device"


class Design(StrEnum):
    """How the trials of the two sides were arranged in time."""

    INTERLEAVED = "interleaved"
    SEPARATE_RUNS = "separate runs"
