"""What an export says, worked out from whole records one by one: slow, and plain to check.

The exports read columns; what they write must be the same to the byte.
"""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from db import units
from db.interchange.write.csv_cells import harmless
from db.interchange.write.flat import KINDS
from db.interchange.write.markdown_cells import escaped_text
from db.interchange.write.parquet import ROWS_PER_GROUP, SCHEMA
from db.records.fields import INT64_MAX
from db.records.identity import code_name
from db.records.ids import (
    build_identity,
    machine_identity,
    series_identity,
    strategy_identity,
    workload_identity,
)
from db.records.samples import percentile_ns
from db.records.trial import (
    ColdStart,
    CompilerEvent,
    CompilerFacts,
    Memory,
    SourceKind,
    Summary,
    TimingSide,
    Trial,
)
from db.tables.trials import SAMPLE_KINDS


def flat_row(trial: Trial) -> dict[str, Any]:
    """Every column of KINDS."""
    machine, build, workload, strategy = trial.machine, trial.build, trial.workload, trial.strategy
    return {
        **{name: getattr(trial, name) for name in ("trial_id", "run_id", "suite", "label")},
        **{name: getattr(trial, name) for name in ("started_at", "ended_at")},
        "source_kind": trial.source.kind.value,
        "source_name": trial.source.name,
        "machine_id": machine_identity(machine),
        "machine": machine.name,
        **{name: getattr(machine, name) for name in ("device", "device_name", "threads")},
        "build_id": build_identity(build),
        "build_label": build.label,
        **{
            name: getattr(build, name)
            for name in ("torch", "torch_variant", "cuda", "driver", "triton", "cudnn", "python", "os")
        },
        "compiler": build.compiler,
        "packages": json.dumps(build.packages, sort_keys=True),
        "settings": json.dumps(build.settings, sort_keys=True),
        "workload_id": workload_identity(workload),
        "workload": workload.name,
        "workload_version": workload.version,
        "task": workload.task.value,
        "shape": json.dumps(workload.shape, sort_keys=True),
        **{name: getattr(workload, name) for name in ("batch_size", "dtype", "items_per_iteration", "item")},
        "strategy_id": strategy_identity(strategy),
        "strategy": strategy.name,
        "strategy_kind": strategy.kind.value,
        "cache": strategy.cache.value,
        "scope": strategy.scope,
        "series_id": series_identity(trial),
        **figures(trial),
    }


def figures(trial: Trial) -> dict[str, Any]:
    """The columns that are results."""
    failure, numerics = trial.failure, trial.numerics
    latency = _latency(trial)
    return {
        "status": trial.status.value,
        "failure_kind": failure.kind.value if failure else None,
        "failure_message": failure.message if failure else None,
        "numerics_status": numerics.status.value if numerics else None,
        "suspect": trial.device_state.suspect if trial.device_state else None,
        "cpu_stall_fraction": trial.host_state.cpu_stall_fraction if trial.host_state else None,
        "code": code_name(*_code(trial)),
        "code_commit": trial.code.commit if trial.code else None,
        "code_dirty": trial.code.dirty if trial.code else None,
        "code_hash": trial.code.source_hash if trial.code else None,
        **_timing(trial, latency),
        **latency,
        **_cost(trial, latency["latency_ns"]),
    }


def _latency(trial: Trial) -> dict[str, Any]:
    summary, items = trial.summary or Summary(), trial.workload.items_per_iteration
    headline = "samples" if trial.timing is None else trial.timing.headline.value
    ordered, control = (sorted(getattr(trial, f"{side}{headline}_ns")) for side in ("", "control_"))
    latency = percentile_ns(ordered, 0.5) if ordered else summary.latency_ns
    control_latency = percentile_ns(control, 0.5) if control else summary.control_latency_ns
    if items is None:
        items = trial.workload.batch_size or 1
    throughput = items * 1e9 / latency if latency else summary.throughput_per_s
    return {
        "latency_ns": latency,
        "latency_p05_ns": percentile_ns(ordered, 0.05),
        "latency_p95_ns": percentile_ns(ordered, 0.95),
        "latency_p99_ns": percentile_ns(ordered, 0.99),
        "latency_sd_ns": statistics.stdev(ordered) if len(ordered) > 1 else None,
        "samples": len(ordered) or summary.n,
        "control_latency_ns": control_latency,
        "control_samples": len(control) or None,
        "speedup": control_latency / latency if control_latency is not None and latency else None,
        "throughput_per_s": throughput,
        "metrics": json.dumps(summary.metrics, sort_keys=True) if summary.metrics else None,
    }


def _timing(trial: Trial, latency: dict[str, Any]) -> dict[str, Any]:
    methods: list[str | None] = [None, None]
    if trial.timing is not None:
        methods = [side and side.method.value for side in (trial.timing.side, trial.timing.control)]
    elif trial.schema_ == "compilewatch.trial/1" and trial.source.kind is SourceKind.MEASURED:
        method = "host" if trial.machine.device == "cpu" else "ungated"
        methods = [None if latency[name] is None else method for name in ("latency_ns", "control_latency_ns")]
    times = ("device_ns", "issue_ns", "wall_sync_ns", "wall_pipelined_ns")
    return {
        "record_version": int(trial.schema_[-1]),
        "timing_method": methods[0],
        "control_timing_method": methods[1],
        "energy_per_step_j": trial.timing.side.energy_per_step_j if trial.timing else None,
        "unflushed_ns": _unflushed(trial.timing.side if trial.timing else None),
        "control_unflushed_ns": _unflushed(trial.timing.control if trial.timing else None),
        **{
            name: percentile_ns(sorted(getattr(trial, name)), 0.5)
            for name in (*times, *(f"control_{name}" for name in times))
        },
    }


def _code(trial: Trial) -> tuple[str | None, bool | None, str | None]:
    return (trial.code.commit, trial.code.dirty, trial.code.source_hash) if trial.code else (None, None, None)


def _unflushed(side: TimingSide | None) -> float | None:
    return None if side is None or side.unflushed_ns is None else float(side.unflushed_ns)


def _cost(trial: Trial, latency_ns: float | None) -> dict[str, Any]:
    cold, compiler = trial.cold_start or ColdStart(), trial.compiler or CompilerFacts()
    cost = None
    if cold.until_steady_ns is not None and cold.calls_until_steady is not None and latency_ns is not None:
        cost = cold.until_steady_ns - cold.calls_until_steady * latency_ns
    return {
        "time_to_first_result_ns": cold.total_ns,
        "first_call_ns": cold.first_call_ns,
        "until_steady_ns": cold.until_steady_ns,
        "calls_until_steady": cold.calls_until_steady,
        "trial_compile_cost_ns": cost,
        "process_tree_cpu_ns": cold.process_tree_cpu_ns,
        "first_call_cpu_ns": cold.first_call_cpu_ns,
        "first_call_instructions": cold.first_call_instructions,
        **(trial.memory or Memory()).model_dump(exclude={"growth_bytes_per_call"}),
        "graphs": compiler.graphs,
        "ops_captured": compiler.ops_captured,
        "graph_breaks": _events(compiler.graph_breaks),
        "recompiles": _events(compiler.recompiles),
    }


def _events(events: Sequence[CompilerEvent] | None) -> int | None:
    return None if events is None else min(sum(event.count for event in events), INT64_MAX)


def as_csv(trials: Iterable[Trial]) -> bytes:
    """The export of `trials` to CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(KINDS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: _cell(name, value) for name, value in flat_row(trial).items()} for trial in trials
    )
    return text.getvalue().encode()


def _cell(name: str, value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return harmless(value) if isinstance(value, str) and KINDS[name] == "text" else value


def as_parquet(trials: Sequence[Trial]) -> bytes:
    """The export of `trials` to Parquet."""
    output = io.BytesIO()
    with pq.ParquetWriter(output, SCHEMA, compression="zstd") as writer:
        for start in range(0, len(trials), ROWS_PER_GROUP):
            rows = [
                {
                    **{
                        name: float(value) if KINDS[name] == "float" and value is not None else value
                        for name, value in flat_row(trial).items()
                    },
                    **{
                        kind.replace("_ns", "_samples_ns") if kind in KINDS else kind: getattr(trial, kind)
                        for kind in SAMPLE_KINDS
                    },
                }
                for trial in trials[start : start + ROWS_PER_GROUP]
            ]
            writer.write_table(pa.Table.from_pylist(rows, schema=SCHEMA))
    return output.getvalue()


def as_markdown(trials: Iterable[Trial]) -> bytes:
    """The rows of `trials` in the Markdown export, without its two lines of a head."""
    return b"".join(_markdown_row(trial) for trial in trials)


def _markdown_row(trial: Trial) -> bytes:
    row, workload, source = figures(trial), trial.workload, trial.source
    batch = f", batch {workload.batch_size}" if workload.batch_size is not None else ""
    texts = [
        f"{workload.name} ({workload.task}, {workload.dtype}{batch})",
        trial.strategy.name,
        trial.machine.device_name,
        trial.build.torch,
        "measured" if source.kind is SourceKind.MEASURED else f"imported ({source.name})",
    ]
    *case, origin = map(escaped_text, texts)
    cells = [
        *case,
        units.moment(trial.started_at),
        row["failure_kind"] or row["status"],
        units.duration(row["latency_ns"]) + _ungated(row),
        units.ratio(row["speedup"]),
        units.duration(row["time_to_first_result_ns"]),
        units.size(row["peak_bytes"]),
        units.count(row["graph_breaks"]),
        origin,
    ]
    return f"| {' | '.join(cells)} |\n".encode()


def _ungated(row: dict[str, Any]) -> str:
    shown = row["latency_ns"] is not None and row["timing_method"] == "ungated"
    return " (ungated)" if shown else ""
