"""Every label and figure of a trial, one row each.

The tables of the database, what is inserted, frames, exported files, columns of cases and the reference page
are made of it. A new figure is a row here, a migration, and its field in the record.
"""

from __future__ import annotations

from functools import partial

from compilewatch.db import units
from compilewatch.db.columns.column import Column, Holder, Kind, SummaryKind, Threshold
from compilewatch.db.records.trial import (
    CacheState,
    FailureKind,
    NumericsStatus,
    SourceKind,
    Status,
    StrategyKind,
    Task,
    TimingMethod,
)
from compilewatch.db.units import duration, ratio

_text = partial(Column, kind=Kind.TEXT)
_moment = partial(Column, kind=Kind.MOMENT)
_integer = partial(Column, kind=Kind.INTEGER)
_float = partial(Column, kind=Kind.FLOAT)
_flag = partial(Column, kind=Kind.FLAG)


def _of(holder: Holder, kind: Kind, column: str, stored: str = "", **more: object) -> Column:
    """A label that every trial of a machine, build, workload or strategy shares."""
    return Column(column=column, kind=kind, holder=holder, stored=stored, label=True, **more)  # type: ignore[arg-type]


_machine, _build = partial(_of, Holder.MACHINE), partial(_of, Holder.BUILD)
_workload, _strategy = partial(_of, Holder.WORKLOAD), partial(_of, Holder.STRATEGY)
_first_call = partial(
    _integer, summary=SummaryKind.MEAN, banded=True, threshold=Threshold.FINE, eager_too=False
)
_count = partial(
    _integer,
    summary=SummaryKind.LARGEST,
    unit="count",
    write=units.count,
    axis=(1, "count"),
    eager_too=False,
    threshold=Threshold.EXACT,
)
_percentile = partial(
    _float,
    summary=SummaryKind.MEAN,
    unit="ns",
    write=duration,
    axis=(1e6, "ms"),
    banded=True,
    threshold=Threshold.COARSE,
)
_clock = partial(
    _float,
    unit="ns",
    write=duration,
    axis=(1e6, "ms"),
    banded=True,
    on_every_device=False,
)

TRIAL: tuple[Column, ...] = (
    _text(column="trial_id", place="trial_id", required=True),
    _text(column="run_id", place="run_id", required=True),
    _text(column="suite", place="suite"),
    _text(column="label", place="label"),
    _moment(column="started_at", place="started_at", required=True),
    _moment(column="ended_at", place="ended_at"),
    _text(column="source_kind", place="source.kind", choices=SourceKind, required=True, label=True),
    _text(column="source_name", place="source.name", required=True, label=True),
    _text(column="machine_id", definition="Hardware by identity.", holder=Holder.SERIES),
    _text(column="machine", place="machine.name", stored="machine_name", required=True, label=True),
    _machine(Kind.TEXT, "device"),
    _machine(Kind.TEXT, "device_name"),
    _machine(Kind.INTEGER, "threads"),
    _text(
        column="device_uuid",
        place="machine.device_uuid",
        in_frames=False,
        in_exports=False,
    ),
    _text(column="build_id", definition="Software stack by identity.", required=True),
    _text(column="build_label", place="build.label", label=True),
    *(_build(Kind.TEXT, name) for name in ("torch", "torch_variant", "cuda", "driver", "triton", "cudnn")),
    *(_build(Kind.TEXT, name) for name in ("python", "os", "compiler")),
    _build(Kind.JSON, "packages"),
    _text(column="conditions_id", definition="Settings by identity.", in_exports=False),
    _of(Holder.CONDITIONS, Kind.JSON, "settings"),
    _text(column="workload_id", definition="Workload by identity.", holder=Holder.SERIES),
    _workload(Kind.TEXT, "workload", "name"),
    _workload(Kind.TEXT, "workload_version", "version"),
    _workload(Kind.TEXT, "task", choices=Task),
    _workload(Kind.INTEGER, "batch_size"),
    _workload(Kind.JSON, "shape"),
    _workload(Kind.TEXT, "dtype"),
    _workload(Kind.FLOAT, "items_per_iteration"),
    _workload(Kind.TEXT, "item"),
    _text(column="strategy_id", definition="Strategy by identity.", holder=Holder.SERIES),
    _strategy(Kind.TEXT, "strategy", "name"),
    _strategy(Kind.TEXT, "strategy_kind", "kind", choices=StrategyKind),
    _strategy(Kind.TEXT, "cache", choices=CacheState),
    _strategy(Kind.TEXT, "scope"),
    _text(
        column="series_id",
        definition="The history of its case on its machine.",
        required=True,
        label=True,
    ),
    _text(column="content_hash", required=True, in_frames=False, in_exports=False),
    _text(column="status", place="status", choices=Status, required=True),
    _text(column="failure_kind", place="failure.kind", choices=FailureKind),
    _text(column="failure_message", place="failure.message"),
    _float(
        column="latency_ns",
        definition="Median time of a step: wall time, except for ungated times of a GPU.",
        key="latency",
        name="Latency",
        unit="ns",
        write=duration,
        axis=(1e6, "ms"),
        banded=True,
        interval=("latency_low_ns", "latency_high_ns"),
        threshold=Threshold.FINE,
        judged=True,
    ),
    _float(column="latency_p05_ns", definition="The latency that 5 % of a process's steps do not exceed."),
    _percentile(
        column="latency_p95_ns",
        definition="The latency that 95 % of a process's steps do not exceed.",
        key="latency_p95",
        name="p95 latency",
    ),
    _percentile(
        column="latency_p99_ns",
        definition="The latency that 99 % of a process's steps do not exceed; of 100 steps or more.",
        key="latency_p99",
        name="p99 latency",
    ),
    _float(
        column="latency_sd_ns",
        definition="Standard deviation of a process's steps.",
        summary=SummaryKind.MEAN,
        key="latency_sd",
        name="Standard deviation within a process",
        unit="ns",
        write=duration,
    ),
    _integer(column="samples", definition="Timed steps."),
    _float(column="control_latency_ns", definition="Median time of an eager step in the same process."),
    _integer(column="control_samples", definition="Timed eager steps in the same process."),
    _integer(
        column="time_to_first_result_ns",
        place="cold_start.total_ns",
        definition="Start of the process to its first result.",
        summary=SummaryKind.MEAN,
        key="time_to_first_result",
        name="Time to first result",
        unit="ns",
        write=duration,
        axis=(1e9, "s"),
        banded=True,
        threshold=Threshold.COARSE,
    ),
    _integer(
        column="first_call_ns",
        place="cold_start.first_call_ns",
        definition="The first call of the step, compilation included.",
        summary=SummaryKind.MEAN,
    ),
    _integer(column="until_steady_ns", place="cold_start.until_steady_ns"),
    _integer(column="calls_until_steady", place="cold_start.calls_until_steady"),
    _float(
        column="trial_compile_cost_ns",
        definition="Its calls until steady, minus as many steady calls.",
        holder=Holder.NONE,
    ),
    _float(
        column="speedup",
        definition="Eager latency over compiled latency in the same process; above 1 is faster.",
        holder=Holder.NONE,
        in_frames=False,
        key="speedup",
        name="Speedup",
        unit="x",
        write=ratio,
        higher_is_better=True,
        axis=(1, "x over eager"),
        banded=True,
        interval=("speedup_low", "speedup_high"),
        eager_too=False,
        threshold=Threshold.FINE,
        judged=True,
    ),
    _float(
        column="throughput_per_s",
        definition="Items per second: what a step works off over its latency.",
        holder=Holder.NONE,
        in_frames=False,
        key="throughput",
        name="Throughput",
        unit="1/s",
        write=lambda value: f"{units.significant(value)} per s",
        higher_is_better=True,
        axis=(1, "items per s"),
        banded=True,
        interval=("throughput_low_per_s", "throughput_high_per_s"),
        threshold=Threshold.FINE,
    ),
    _integer(
        column="process_tree_cpu_ns",
        place="cold_start.process_tree_cpu_ns",
        definition="CPU time of the process and its children up to the first result.",
        summary=SummaryKind.MEAN,
        key="cold_start_cpu",
        name="Cold start CPU time",
        unit="ns",
        write=duration,
        axis=(1e9, "s"),
        banded=True,
        threshold=Threshold.COARSE,
    ),
    _first_call(
        column="first_call_cpu_ns",
        place="cold_start.first_call_cpu_ns",
        definition="CPU time of the process and its children in the first compiled call.",
        key="compile_cpu",
        name="Compile CPU time",
        unit="ns",
        write=duration,
        axis=(1e9, "s"),
    ),
    _first_call(
        column="first_call_instructions",
        place="cold_start.first_call_instructions",
        definition="Instructions of the first compiled call in user mode, where the kernel counts them.",
        key="compile_instructions",
        name="Compile instructions",
        unit="count",
        write=units.count,
        axis=(1e9, "billion"),
    ),
    _integer(
        column="peak_bytes",
        place="memory.peak_bytes",
        summary=SummaryKind.PASSED,
        definition="Most memory in one warm step; on a GPU with CUDA graphs' pools, not cuBLAS's workspace.",
        key="peak_memory",
        name="Peak memory",
        unit="bytes",
        write=units.size,
        axis=(2**20, "MiB"),
        banded=True,
        threshold=Threshold.COARSE,
        judged=True,
    ),
    _integer(column="peak_reserved_bytes", place="memory.peak_reserved_bytes"),
    _integer(column="peak_with_compile_bytes", place="memory.peak_with_compile_bytes"),
    _integer(column="peak_rss_bytes", place="memory.peak_rss_bytes"),
    _integer(column="control_peak_bytes", place="memory.control_peak_bytes", summary=SummaryKind.PASSED),
    _integer(column="graphs", place="compiler.graphs", summary=SummaryKind.LARGEST),
    _integer(
        column="ops_captured",
        place="compiler.ops_captured",
        summary=SummaryKind.LARGEST,
        definition="Operations in the graphs that were captured.",
        key="captured_operations",
        name="Captured operations",
        unit="count",
        write=units.count,
        higher_is_better=True,
        axis=(1, "operations"),
        eager_too=False,
    ),
    _count(
        column="graph_breaks",
        definition="How often capture of the graph was interrupted.",
        key="graph_breaks",
        name="Graph breaks",
    ),
    _count(
        column="recompiles",
        definition="How often a function was compiled again.",
        key="recompiles",
        name="Recompiles",
    ),
    _text(
        column="numerics_status",
        place="numerics.status",
        definition="Whether the compiled result is right.",
        choices=NumericsStatus,
        key="numerics",
        name="Numerics",
        unit="status",
        threshold=Threshold.EXACT,
    ),
    _text(
        column="metrics",
        definition="Further figures of an imported result, as JSON.",
        holder=Holder.NONE,
        in_frames=False,
    ),
    _flag(column="suspect", place="device_state.suspect"),
    _float(column="cpu_stall_fraction", place="host_state.cpu_stall_fraction"),
    _integer(column="record_version", definition="Version of the record's format.", required=True),
    _text(column="timing_method", definition="How device time was taken.", choices=TimingMethod),
    _text(column="control_timing_method", definition="The same of eager.", choices=TimingMethod),
    _clock(
        column="device_ns",
        definition="What the GPU needs for a step; it decides whether the compiled code changed.",
        key="device_time",
        name="Device time",
        threshold=Threshold.FINE,
        judged=True,
    ),
    _clock(
        column="issue_ns",
        definition="Host time until a step has returned, not until the GPU is done.",
        key="issue_time",
        name="Host issue time",
        threshold=Threshold.COARSE,
        judged=True,
    ),
    _clock(
        column="wall_sync_ns",
        definition="One step and a synchronisation on an idle GPU: what one request waits.",
        key="wall_sync",
        name="Wall time (synchronised)",
        threshold=Threshold.FINE,
    ),
    _clock(
        column="wall_pipelined_ns",
        definition="Many steps and one synchronisation, per step: what a training loop pays.",
        key="wall_pipelined",
        name="Wall time (pipelined)",
        threshold=Threshold.FINE,
    ),
    _float(column="control_device_ns", definition="Device time of an eager step."),
    _float(column="control_issue_ns", definition="Host issue time of an eager step."),
    _float(column="control_wall_sync_ns", definition="Wall time (synchronised) of an eager step."),
    _float(column="control_wall_pipelined_ns", definition="Wall time (pipelined) of an eager step."),
    _float(
        column="unflushed_ns",
        place="timing.side.unflushed_ns",
        definition="Device time of a step whose L2 cache is not flushed, as in the loop of the wall time.",
    ),
    _float(
        column="control_unflushed_ns", place="timing.control.unflushed_ns", definition="The same of eager."
    ),
    _float(
        column="energy_per_step_j",
        place="timing.side.energy_per_step_j",
        definition="Energy of the whole GPU for a step, by the driver's own counter.",
        summary=SummaryKind.MEAN,
        key="energy",
        name="Energy per step",
        unit="J",
        write=units.energy,
        axis=(1, "J"),
        banded=True,
        on_every_device=False,
        threshold=Threshold.COARSE,
        judged=True,
    ),
    _integer(
        column="compile_threads",
        definition="With how many threads torch compiled.",
    ),
    _integer(
        column="compile_pool_size",
        place="compiler.compile_pool_size",
        definition="Processes that torch kept for compiling.",
    ),
    _text(
        column="code",
        definition="The commit of the workload's own work tree, in short.",
        holder=Holder.NONE,
        label=True,
    ),
    _text(column="code_commit", place="code.commit"),
    _flag(column="code_dirty", place="code.dirty"),
    _text(column="code_hash", place="code.source_hash"),
)

STORED = tuple(each for each in TRIAL if each.holder is Holder.TRIAL)
"""The columns of the table `trial`."""
TIMED = tuple(each.column for each in TRIAL if each.summary is SummaryKind.MEAN)
COUNTED = tuple(each.column for each in TRIAL if each.summary is SummaryKind.LARGEST)
LABELS = tuple(each.column for each in TRIAL if each.label)
"""What a case has from its newest trial."""
