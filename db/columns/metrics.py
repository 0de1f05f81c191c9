"""The one table of metrics: what each is called, its unit, how it is written, which way is good, what it is.

Command line, pages, API, exports and documents read it. It has what is judged (`db.records.vocabulary`),
what a history can show, and what a target can ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from db import units
from db.records.vocabulary import Metric
from db.units import duration, ratio


@dataclass(frozen=True, slots=True)
class MetricEntry:
    """One metric of a case.

    `column` is that of `db.metrics.case_columns` (or of a trial), `unit` what it holds. `band` and `interval`
    are columns of its ends across trials and of its 95 % interval. `axis` is a divisor and the unit that a
    chart shows after it; None where it has no history. `eager_too`: whether eager has one of its own.
    """

    key: str
    name: str
    unit: str
    write: Callable[..., str]
    column: str
    definition: str
    higher_is_better: bool = False
    axis: tuple[float, str] | None = None
    band: tuple[str, str] | None = None
    interval: tuple[str, str] | None = None
    eager_too: bool = True
    on_every_device: bool = True

    @property
    def divisor(self) -> float:
        """What a value is divided by on a chart's axis."""
        return self.axis[0] if self.axis else 1

    @property
    def axis_unit(self) -> str:
        """The unit on a chart's axis."""
        return self.axis[1] if self.axis else self.unit

    @property
    def word(self) -> str:
        """The name inside a sentence."""
        return self.name.lower()


def _per_second(value: float) -> str:
    return f"{units.significant(value)} per s"


def _across(column: str) -> tuple[str, str]:
    return f"{column}_p10", f"{column}_p90"


def _time(key: str, name: str, column: str, definition: str) -> MetricEntry:
    return MetricEntry(
        *(key, name, "ns", duration, column, definition),
        axis=(1e6, "ms"),
        band=_across(column),
        on_every_device=False,
    )


def _speedup(key: str, name: str, definition: str) -> MetricEntry:
    return MetricEntry(
        *(key, name, "x", ratio, key, definition),
        higher_is_better=True,
        axis=(1, "x over eager"),
        band=_across(key),
        eager_too=False,
        on_every_device=False,
    )


_ENTRIES = (
    MetricEntry(
        *("latency", "Latency", "ns", duration, "latency_ns"),
        "Median time of a step: wall time, except for ungated times of a GPU.",
        axis=(1e6, "ms"),
        band=_across("latency_ns"),
        interval=("latency_low_ns", "latency_high_ns"),
    ),
    MetricEntry(
        *("speedup", "Speedup", "x", ratio, "speedup"),
        "Eager latency over compiled latency in the same process; above 1 is faster.",
        higher_is_better=True,
        axis=(1, "x over eager"),
        band=_across("speedup"),
        interval=("speedup_low", "speedup_high"),
        eager_too=False,
    ),
    _time(
        *("device_time", "Device time", "device_ns"),
        "What the GPU needs for a step; it decides whether the compiled code changed.",
    ),
    _time(
        *("issue_time", "Host issue time", "issue_ns"),
        "Host time until a step has returned, not until the GPU is done.",
    ),
    _time(
        *("wall_sync", "Wall time (synchronised)", "wall_sync_ns"),
        "One step and a synchronisation on an idle GPU: what one request waits.",
    ),
    _time(
        *("wall_pipelined", "Wall time (pipelined)", "wall_pipelined_ns"),
        "Many steps and one synchronisation, per step: what a training loop pays.",
    ),
    _speedup("device_speedup", "Device speedup", "Eager device time over compiled device time."),
    _speedup("issue_speedup", "Issue speedup", "Eager issue time over compiled issue time."),
    _speedup(
        *("wall_sync_speedup", "Wall speedup (synchronised)"), "Eager over compiled synchronised wall time."
    ),
    _speedup(
        *("wall_pipelined_speedup", "Wall speedup (pipelined)"), "Eager over compiled pipelined wall time."
    ),
    MetricEntry(
        *("compile_cost", "Compile cost", "ns", duration, "compile_cost_ns"),
        "Calls until steady, minus as many steady calls.",
        axis=(1e9, "s"),
        band=_across("compile_cost_ns"),
        interval=("compile_cost_low_ns", "compile_cost_high_ns"),
        eager_too=False,
    ),
    MetricEntry(
        *("peak_memory", "Peak memory", "bytes", units.size, "peak_bytes"),
        "Most memory in one warm step; on a GPU cuBLAS's workspace is in it.",
        axis=(2**20, "MiB"),
        band=_across("peak_bytes"),
    ),
    MetricEntry(
        *("break_even", "Break-even", "steps", units.steps, "break_even_steps"),
        "Steps after which compiling has paid for itself; never, where compiled is not faster.",
        axis=(1, "steps"),
        band=("break_even_low", "break_even_high"),
        interval=("break_even_low", "break_even_high"),
        eager_too=False,
    ),
    MetricEntry(
        *("graph_breaks", "Graph breaks", "count", units.count, "graph_breaks"),
        "How often capture of the graph was interrupted.",
    ),
    MetricEntry(
        *("recompiles", "Recompiles", "count", units.count, "recompiles"),
        "How often a function was compiled again.",
    ),
    MetricEntry(
        *("numerics", "Numerics", "status", str, "numerics_status"), "Whether the compiled result is right."
    ),
    MetricEntry(
        *("memory_ratio", "Memory ratio", "x", ratio, "memory_ratio"),
        "Eager peak over compiled peak; above 1 needs less.",
        higher_is_better=True,
    ),
    MetricEntry(
        *("time_to_first_result", "Time to first result", "ns", duration, "time_to_first_result_ns"),
        "Start of the process to its first result.",
        axis=(1e9, "s"),
        band=_across("time_to_first_result_ns"),
    ),
    MetricEntry(
        *("cold_start_cpu", "Cold start CPU time", "ns", duration, "process_tree_cpu_ns"),
        "CPU time of the process and its children up to the first result.",
        axis=(1e9, "s"),
        band=_across("process_tree_cpu_ns"),
    ),
    MetricEntry(
        *("compile_cpu", "Compile CPU time", "ns", duration, "first_call_cpu_ns"),
        "CPU time of the process and its children in the first compiled call.",
        axis=(1e9, "s"),
        band=_across("first_call_cpu_ns"),
        eager_too=False,
    ),
    MetricEntry(
        *("compile_instructions", "Compile instructions", "count", units.count, "first_call_instructions"),
        "Instructions of the first compiled call in user mode, where the kernel counts them.",
        axis=(1e9, "billion"),
        band=_across("first_call_instructions"),
        eager_too=False,
    ),
    MetricEntry(
        *("latency_p95", "p95 latency", "ns", duration, "latency_p95_ns"),
        "The latency that 95 % of a process's steps do not exceed.",
    ),
    MetricEntry(
        *("throughput", "Throughput", "1/s", _per_second, "throughput_per_s"),
        "Items per second at the latency.",
        higher_is_better=True,
    ),
)
METRICS: dict[str, MetricEntry] = {entry.key: entry for entry in _ENTRIES}
"""By key; a member of `db.records.vocabulary.Metric` is one."""
BY_COLUMN: dict[str, MetricEntry] = {entry.column: entry for entry in _ENTRIES}
HISTORY_METRICS = tuple(entry.key for entry in _ENTRIES if entry.axis is not None)
"""Those whose history can be drawn, in the order in which they are offered."""

METRIC_UNITS: dict[Metric, str] = {metric: METRICS[metric].unit for metric in Metric}
METRIC_NAMES: dict[Metric, str] = {metric: METRICS[metric].name for metric in Metric}
SUMMARY_COLUMNS: dict[Metric, str] = {metric: METRICS[metric].column for metric in Metric}
"""The column of a case's summary (`db.metrics.case_columns`) that holds the metric."""

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
    return METRICS[metric].higher_is_better
