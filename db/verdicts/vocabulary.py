"""The words of a judgement: metrics, verdicts, cause classes."""

from __future__ import annotations

from enum import StrEnum


class Metric(StrEnum):
    """What is judged. `numerics` is the pass set: did the case finish with the right numbers."""

    LATENCY = "latency"
    SPEEDUP = "speedup"
    COMPILE_COST = "compile_cost"
    PEAK_MEMORY = "peak_memory"
    BREAK_EVEN = "break_even"
    GRAPH_BREAKS = "graph_breaks"
    RECOMPILES = "recompiles"
    NUMERICS = "numerics"


METRIC_UNITS: dict[Metric, str] = {
    Metric.LATENCY: "ns",
    Metric.SPEEDUP: "x",
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
    Metric.COMPILE_COST,
    Metric.PEAK_MEMORY,
    Metric.BREAK_EVEN,
)
"""Metrics with noise: tested on log values of trials."""

COUNTED_METRICS = (Metric.GRAPH_BREAKS, Metric.RECOMPILES, Metric.NUMERICS)
"""Metrics without noise: compared exactly."""


def higher_is_better(metric: Metric) -> bool:
    """Whether a rise of the metric is an improvement: only that of speedup is."""
    return metric is Metric.SPEEDUP


class Verdict(StrEnum):
    """What a comparison says of a metric of a case, or of the whole. Unchanged is shown, not assumed."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPARABLE = "not comparable"
    MISSING = "missing"


class CauseClass(StrEnum):
    """What a change is put down to: the compiler, what eager shares, the machine, other settings, chance."""

    COMPILER = "compiler"
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


class Design(StrEnum):
    """How the trials of the two sides were arranged in time."""

    INTERLEAVED = "interleaved"
    SEPARATE_RUNS = "separate runs"
