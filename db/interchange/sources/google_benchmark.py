"""google-benchmark `--benchmark_out` JSON: a result per benchmark and repetition.

Shape: google/benchmark docs/user_guide.md, src/json_reporter.cc. `real_time` is of one iteration, in
`time_unit`. Aggregates of repetitions follow from them and are left out.

Repetitions are trials, errors failures. To name: torch, GPU, dtype and strategy.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilewatch.db.interchange.files.fields import Fields, json_document, moment
from compilewatch.db.interchange.files.foreign_trials import ForeignResult, failed
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.trial import Summary, Task
from compilewatch.db.units import plural

_NS_OF_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def read(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per iteration run. Raises RecordError naming file and field."""
    document = json_document(file)
    left_out = 0
    for fields in document.objects("benchmarks"):
        if fields.data.get("run_type", "iteration") != "iteration":
            left_out += 1
            continue
        yield _result(fields, document.part("context"))
    if left_out:
        options.note(f"{file.shown}: {plural(left_out, 'aggregate')} of repetitions left out.")


def _result(fields: Fields, context: Fields) -> ForeignResult:
    unit = fields.text("time_unit") or "ns"
    if unit not in _NS_OF_UNITS:
        fields.fail("time_unit", f"must be one of {', '.join(_NS_OF_UNITS)}")
    problem = fields.text("error_message", 1_000) if fields.flag("error_occurred") else None
    latency_ns = None if problem else fields.scaled("real_time", _NS_OF_UNITS[unit])
    if latency_ns is None and problem is None:
        fields.fail("real_time", "is missing")
    summary = Summary(
        # Less than a nanosecond is none.
        latency_ns=latency_ns or 1,
        n=fields.count("iterations"),
        throughput_per_s=fields.number("items_per_second"),
    )
    return ForeignResult(
        place=fields.place,
        workload=fields.required_text("name"),
        strategy=None,
        raw=dict(fields.data),
        stated={
            "measured_at": moment(context, "date"),
            "machine": context.text("host_name"),
            "cpu_count": context.count("num_cpus"),
        },
        assumed={"task": Task.FUNCTION},
        failure=failed(problem) if problem else None,
        parts={} if problem else {"summary": summary},
    )
