"""The words of a judgement: metrics, verdicts, cause classes."""

from __future__ import annotations

from enum import StrEnum


class Metric(StrEnum):
    """What is judged. `numerics` is the pass set: did the case finish with the right numbers.

    Latency is the headline, what people wait for. Device time decides whether the compiled code changed,
    host issue time whether launching, guards or Python did.
    """

    LATENCY = "latency"
    SPEEDUP = "speedup"
    DEVICE_TIME = "device_time"
    ISSUE_TIME = "issue_time"
    DEVICE_SPEEDUP = "device_speedup"
    COMPILE_COST = "compile_cost"
    PEAK_MEMORY = "peak_memory"
    BREAK_EVEN = "break_even"
    GRAPH_BREAKS = "graph_breaks"
    RECOMPILES = "recompiles"
    NUMERICS = "numerics"


METRIC_UNITS: dict[Metric, str] = {
    Metric.LATENCY: "ns",
    Metric.SPEEDUP: "x",
    Metric.DEVICE_TIME: "ns",
    Metric.ISSUE_TIME: "ns",
    Metric.DEVICE_SPEEDUP: "x",
    Metric.COMPILE_COST: "ns",
    Metric.PEAK_MEMORY: "bytes",
    Metric.BREAK_EVEN: "steps",
    Metric.GRAPH_BREAKS: "count",
    Metric.RECOMPILES: "count",
    Metric.NUMERICS: "status",
}

SUMMARY_COLUMNS: dict[Metric, str] = {
    Metric.LATENCY: "latency_ns",
    Metric.SPEEDUP: "speedup",
    Metric.DEVICE_TIME: "device_ns",
    Metric.ISSUE_TIME: "issue_ns",
    Metric.DEVICE_SPEEDUP: "device_speedup",
    Metric.COMPILE_COST: "compile_cost_ns",
    Metric.PEAK_MEMORY: "peak_bytes",
    Metric.BREAK_EVEN: "break_even_steps",
    Metric.GRAPH_BREAKS: "graph_breaks",
    Metric.RECOMPILES: "recompiles",
    Metric.NUMERICS: "numerics_status",
}
"""The column of a case's summary (`db.metrics.case_columns`) that holds the metric."""

METRIC_NAMES: dict[Metric, str] = {
    Metric.LATENCY: "Latency",
    Metric.SPEEDUP: "Speedup",
    Metric.DEVICE_TIME: "Device time",
    Metric.ISSUE_TIME: "Host issue time",
    Metric.DEVICE_SPEEDUP: "Device speedup",
    Metric.COMPILE_COST: "Compile cost",
    Metric.PEAK_MEMORY: "Peak memory",
    Metric.BREAK_EVEN: "Break-even",
    Metric.GRAPH_BREAKS: "Graph breaks",
    Metric.RECOMPILES: "Recompiles",
    Metric.NUMERICS: "Numerics",
}

MEASURED_METRICS = (
    Metric.LATENCY,
    Metric.SPEEDUP,
    Metric.DEVICE_TIME,
    Metric.ISSUE_TIME,
    Metric.DEVICE_SPEEDUP,
    Metric.COMPILE_COST,
    Metric.PEAK_MEMORY,
    Metric.BREAK_EVEN,
)
"""Metrics with noise: tested on log values of trials."""

SPEEDUPS = (Metric.SPEEDUP, Metric.DEVICE_SPEEDUP)
"""Eager time over compiled time."""

COUNTED_METRICS = (Metric.GRAPH_BREAKS, Metric.RECOMPILES, Metric.NUMERICS)
"""Metrics without noise: compared exactly."""


def higher_is_better(metric: Metric) -> bool:
    """Whether a rise of the metric is an improvement: only that of a speedup is."""
    return metric in SPEEDUPS


class Verdict(StrEnum):
    """What a comparison says of a metric of a case, or of the whole. Unchanged is shown, not assumed."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPARABLE = "not comparable"
    MISSING = "missing"


class CauseClass(StrEnum):
    """What a change is put down to: the compiler's code, the host that issues it, what eager shares, the
    machine, other settings, chance.
    """

    COMPILER = "compiler"
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
