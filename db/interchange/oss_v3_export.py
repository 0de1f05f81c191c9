"""Export to PyTorch's OSS benchmark database v3: one JSON record per metric and line.

Shape: pytorch/test-infra clickhouse_db_schema/benchmark.oss_ci_benchmark_v3/schema.sql. `extra_info` maps
text to text, memory sizes are whole GB. Metrics carry the names and units of PyTorch
`benchmarks/dynamo`, which its dashboard reads: `abs_latency` ms, `speedup`, `compilation_latency` s,
`compression_ratio`, peaks in GB, and `accuracy` as text. What the table has no column for stands in
`extra_info`: the setting of a trial whole, and of a metric the field of ours that it is. It is for others:
`import` does not read it back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, BinaryIO, NamedTuple

from compilewatch.db.interchange.files.fields import BYTES_PER_GB, NS_PER_MS, NS_PER_S
from compilewatch.db.interchange.flat import figures
from compilewatch.db.queries.records import Stack, TrialBatch
from compilewatch.db.records.trial import (
    FailureKind,
    NumericsStatus,
    SourceKind,
    Status,
    StrategyKind,
    Summary,
)

BENCHMARK = "compilewatch"
SETTING = "compilewatch_setting"
"""Workload, strategy, machine and build of a trial, as JSON in `benchmark.extra_info`."""
FIELD = "compilewatch_field"
"""Of a metric: which field of ours it is, where its name does not tell."""
_ACCURACY = {
    NumericsStatus.PASS: "pass",
    NumericsStatus.NOT_CHECKED: "pass_due_to_skip",
    NumericsStatus.REPRODUCIBLE: "pass_due_to_skip",
    NumericsStatus.EAGER_TWO_RUNS_DIFFER: "eager_variation",
    NumericsStatus.FAIL: "fail_accuracy",
    NumericsStatus.DEGENERATE: "fail_accuracy",
}
_FAILED = {
    FailureKind.OUT_OF_MEMORY: "OOM",
    FailureKind.TIMEOUT: "timeout",
    FailureKind.WRONG_RESULT: "fail_accuracy",
}

_FAILURE_WORDS = {
    *("fail_accuracy", "fail_to_run", "OOM", "eager_1st_run_OOM", "eager_2nd_run_OOM", "timeout"),
    *("infra_error", "model_fail_to_load", "eager_fail_to_run", "eager_1st_run_fail", "eager_2nd_run_fail"),
    *("eager_two_runs_differ", "compile_failed"),
}
_OWN = ("started_at", "trial_id", "run_id", "suite", "label")
_TIMED = frozenset({"abs_latency", "speedup"})

# How many heads of lines are remembered; a head takes 1 kB.
_REMEMBERED = 5_000
# No stored text holds NUL, and JSON spells it in no other way.
_OWN_IDS = "\0"
_OWN_IDS_AS_JSON = json.dumps(_OWN_IDS)


class _Figures(NamedTuple):
    """What metrics are made of; columns of `trial` and of `db.interchange.flat`."""

    source_kind: str
    status: str
    failure_kind: str | None
    timing_method: str | None
    numerics_status: str | None
    latency_ns: float | None
    speedup: float | None
    trial_compile_cost_ns: float | None
    peak_bytes: int | None
    peak_with_compile_bytes: int | None
    peak_rss_bytes: int | None
    control_peak_bytes: int | None
    graphs: int | None
    graph_breaks: int | None
    failure_message: str | None


def write(batches: Iterable[TrialBatch], output: BinaryIO) -> int:
    """Every metric of every trial as one line; returns how many trials were written."""
    head_of = lru_cache(_REMEMBERED)(_head)
    count = 0
    for batch in batches:
        columns = {**batch.columns, **figures(batch)}
        heads = map(head_of, batch.stacks, columns["suite"], columns["source_name"])
        rows = map(_Figures._make, zip(*[columns[name] for name in _Figures._fields], strict=True))
        own = zip(*[columns[name] for name in _OWN], strict=True)
        lines = []
        for (before, after), (started_at, *named), stack, summary, row in zip(
            heads, own, batch.stacks, batch.summaries, rows, strict=True
        ):
            # The place of a trial's id, and with it of all that is its own.
            texts = _texts(**dict(zip(_OWN[1:], named, strict=True)), started_at=started_at.isoformat())
            ids = json.dumps(texts)[len('{"trial_id": ') : -1]
            head = f'{{"timestamp": {int(started_at.timestamp())}, {before}{ids}{after}, "metric": '
            lines += [f"{head}{metric}}}\n" for metric in _metrics(stack, summary, row)]
        output.write("".join(lines).encode())
        count += len(batch.stacks)
    return count


def _head(stack: Stack, suite: str | None, source: str) -> tuple[str, str]:
    """What lines of trials have in common, as JSON without braces: before their own ids, and after."""
    before, after = json.dumps(_common(stack, suite, source))[1:-1].split(_OWN_IDS_AS_JSON)
    return before, after


def _common(stack: Stack, suite: str | None, source: str) -> dict[str, Any]:
    build, workload, strategy = stack.build, stack.workload, stack.strategy
    setting = {
        name: part.model_dump(mode="json", exclude_defaults=True) for name, part in stack.parts().items()
    }
    return {
        "schema_version": "v3",
        "name": suite or BENCHMARK,
        "runners": [_runner(stack)],
        "benchmark": {
            "name": BENCHMARK,
            "mode": workload.task.value,
            "dtype": workload.dtype,
            "extra_info": _texts(
                device=stack.machine.device,
                compilewatch_strategy=strategy.name,
                compile_mode=strategy.mode,
                cache=strategy.cache.value,
                scope=strategy.scope,
                batch_size=workload.batch_size,
                source=source,
                **{SETTING: json.dumps(setting, sort_keys=True)},
                trial_id=_OWN_IDS,
            ),
        },
        "model": {
            "name": workload.name,
            "type": "workload",
            "backend": strategy.backend or strategy.name,
            "origins": [suite or BENCHMARK],
            "extra_info": _texts(**{"version": workload.version} | workload.shape),
        },
        "dependencies": {
            "pytorch": {
                "repo": "pytorch/pytorch",
                "branch": "",
                "sha": build.torch_git or "",
                "version": build.torch + (f"+{build.torch_variant}" if build.torch_variant else ""),
                "extra_info": _texts(
                    cuda=build.cuda, driver=build.driver, triton=build.triton, python=build.python
                ),
            }
        },
    }


def _runner(stack: Stack) -> dict[str, Any]:
    machine = stack.machine
    gpu = machine.device != "cpu"
    counts = {
        "cpu_count": machine.cpu_count,
        "avail_mem_in_gb": _whole_gb(machine.ram_bytes),
        "gpu_count": machine.device_count if gpu else 0,
        "avail_gpu_mem_in_gb": _whole_gb(machine.device_memory_bytes if gpu else 0),
    }
    return {
        "name": machine.name,
        "type": machine.device_name,
        "cpu_info": machine.cpu_name or ("" if gpu else machine.device_name),
        "gpu_info": machine.device_name if gpu else "",
        # The table's columns know no null; a key that is left out is one that nobody told.
        **{name: value for name, value in counts.items() if value is not None},
        "extra_info": _texts(os=stack.build.os),
    }


def _whole_gb(size_bytes: int | None) -> int | None:
    return None if size_bytes is None else round(size_bytes / BYTES_PER_GB)


def _metrics(stack: Stack, summary: Summary | None, row: _Figures) -> Iterator[str]:
    """The figures that are known; what is missing has no record, for PyTorch's dashboard averages zeros."""
    accuracy = accuracy_of(row.failure_kind, row.numerics_status, row.failure_message)
    if accuracy is not None:
        # In a list and in extra_info: `output_json` in pytorch/pytorch benchmarks/dynamo/common.py.
        texts = _texts(
            failure_kind=row.failure_kind, failure=row.failure_message, numerics_status=row.numerics_status
        )
        yield json.dumps({"name": "accuracy", "extra_info": {"benchmark_values": [accuracy], **texts}})
    if row.status == Status.FAILED:
        return
    metrics = summary.metrics if summary else {}
    figures = {name: value for name, value in _figures(stack, row, metrics).items() if value is not None}
    peak = _peak(stack, row)[0]
    for name, value in {**metrics, **figures}.items():
        info = _timing(row) if name in _TIMED else {}
        if name not in figures or (name == "compression_ratio" and name in metrics):
            info = {FIELD: "metrics"}
        elif name == "dynamo_peak_mem" and peak is not None:
            info = {FIELD: peak}
        # A finite number is the same in Python and in JSON.
        yield (
            f'{{"name": {_quoted(name)}, "benchmark_values": [{value!r}], "target_value": 0.0, '
            f'"extra_info": {json.dumps(info)}}}'
        )


def _timing(row: _Figures) -> dict[str, str]:
    """How a GPU or CPU was timed; nothing where its source does not say."""
    return {} if row.timing_method is None else {"timing_method": str(row.timing_method)}


_quoted = lru_cache(_REMEMBERED)(json.dumps)


def accuracy_of(failure_kind: str | None, numerics_status: str | None, message: str | None) -> str | None:
    """In the words of PyTorch's benchmarks; of an imported failure in the very word that it had there."""
    if failure_kind is not None:
        word = (message or "").rpartition(" ended with ")[2].removesuffix(".")
        own = _FAILED.get(FailureKind(failure_kind), "fail_to_run")
        return word if word in _FAILURE_WORDS else own
    return _ACCURACY[NumericsStatus(numerics_status)] if numerics_status else None


def _figures(stack: Stack, row: _Figures, metrics: Mapping[str, float]) -> dict[str, float | None]:
    _, peak = _peak(stack, row)
    ratio = row.control_peak_bytes / peak if peak and row.control_peak_bytes else None
    return {
        "abs_latency": _scaled(row.latency_ns, NS_PER_MS),
        "speedup": row.speedup,
        "compilation_latency": _compile_seconds(stack, row.trial_compile_cost_ns),
        # The source's own comes from peaks before they were rounded.
        "compression_ratio": metrics.get("compression_ratio", ratio),
        "eager_peak_mem": _scaled(row.control_peak_bytes, BYTES_PER_GB),
        "dynamo_peak_mem": _scaled(peak, BYTES_PER_GB),
        "unique_graphs": row.graphs,
        "graph_breaks": row.graph_breaks,
    }


def _peak(stack: Stack, row: _Figures) -> tuple[str | None, int | None]:
    """Which peak goes out, and its bytes. On the CPU other tools know the process's peak only; ours has the
    interpreter and the control in it.
    """
    of_process = row.source_kind == SourceKind.IMPORTED and stack.machine.device == "cpu"
    for name in ("peak_bytes", "peak_with_compile_bytes", *(("peak_rss_bytes",) if of_process else ())):
        if (size := getattr(row, name)) is not None:
            return name, size
    return None, None


def _compile_seconds(stack: Stack, cost_ns: float | None) -> float | None:
    """Unknown for eager, which compiles nothing, and where noise makes it negative."""
    if stack.strategy.kind is StrategyKind.EAGER or cost_ns is None or cost_ns < 0:
        return None
    return cost_ns / NS_PER_S


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value / scale


def _texts(**values: object) -> dict[str, str]:
    return {key: str(value) for key, value in values.items() if value is not None}
