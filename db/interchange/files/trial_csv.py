"""Our own CSV, as `compilewatch export --format csv` writes it: a trial a row, by the names of its columns.

What a row says comes back under the same names: the case, machine, build and code, the moment, median latency
and that of eager, compile cost, peaks, counts, the failure, the pass set and further metrics. Each is a new,
imported trial.

Not taken: ids, percentiles, the times of a GPU, settings and samples; `--format jsonl` loses nothing. To
name: nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, TypeVar

from compilewatch.db.interchange.files.fields import Fields, as_fields, csv_rows, load_json, moment
from compilewatch.db.interchange.files.foreign_trials import (
    ForeignResult,
    compile_cost,
    compiler_counts,
    failed,
    known_strategy,
)
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import (
    CacheState,
    Code,
    FailureKind,
    Memory,
    Numerics,
    NumericsStatus,
    Status,
    Strategy,
    StrategyKind,
    Summary,
    Task,
)

MARKS = frozenset({"trial_id", "series_id", "record_version", "workload_version", "started_at"})
"""Columns that together no other table has."""

_FACTS = (
    *("machine", "device", "device_name", "dtype", "suite"),
    *("torch", "torch_variant", "cuda", "driver", "triton", "cudnn", "python", "os", "compiler"),
)
Word = TypeVar("Word", bound=StrEnum)


def read(file: InputFile, _: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per row. Raises RecordError naming file, line and column."""
    return map(_result, csv_rows(file))


def _result(row: Fields) -> ForeignResult:
    row = Fields(row.place, {name: _text(cell) for name, cell in row.data.items()})
    has_failed = _word(row, "status", Status) is Status.FAILED
    packages, shape = (_object(row, name) for name in ("packages", "shape"))
    kind = _word(row, "failure_kind", FailureKind) or FailureKind.CRASH
    message = row.text("failure_message", 10_000) or kind.value.replace("_", " ")
    return ForeignResult(
        place=row.place,
        workload=row.required_text("workload"),
        strategy=_strategy(row),
        raw=dict(row.data),
        stated={
            **{name: row.text(name) for name in _FACTS},
            "packages": {name: packages.required_text(name) for name in packages.data} or None,
            "threads": row.count("threads"),
            "batch_size": row.count("batch_size"),
            "measured_at": moment(row, "started_at"),
            "task": _word(row, "task", Task),
        },
        shape={name: size for name in shape.data if (size := shape.count(name)) is not None},
        item=row.text("item"),
        items_per_iteration=row.number("items_per_iteration"),
        failure=failed(message, kind) if has_failed else None,
        parts={"code": _code(row)} | ({} if has_failed else _parts(row)),
        label=row.text("label"),
    )


def _parts(row: Fields) -> dict[str, Any]:
    metrics, cost = _object(row, "metrics"), row.number("trial_compile_cost_ns")
    latency_ns, status = row.duration_ns("latency_ns", 1), _word(row, "numerics_status", NumericsStatus)
    sizes = ("peak_bytes", "peak_reserved_bytes", "peak_with_compile_bytes", "peak_rss_bytes")
    peaks: dict[str, Any] = {name: row.count(name) for name in (*sizes, "control_peak_bytes")}
    return {
        "summary": Summary(
            latency_ns=latency_ns,
            control_latency_ns=row.duration_ns("control_latency_ns", 1),
            n=row.count("samples"),
            throughput_per_s=row.number("throughput_per_s") if latency_ns is None else None,
            metrics={
                metrics.storable(name, name): value
                for name in metrics.data
                if (value := metrics.number(name)) is not None
            },
        ),
        "cold_start": compile_cost(row.whole("trial_compile_cost_ns", cost) if cost and cost > 0 else None),
        "memory": Memory(**peaks) if any(peaks.values()) else None,
        "compiler": compiler_counts(*map(row.count, ("graphs", "graph_breaks", "ops_captured"))),
        "numerics": None if status is None else Numerics(status=status),
    }


def _code(row: Fields) -> Code | None:
    commit, dirty = row.text("code_commit"), {"True": True, "False": False}.get(row.text("code_dirty") or "")
    return None if commit is None else Code(commit=commit, dirty=dirty, source_hash=row.text("code_hash"))


def _strategy(row: Fields) -> Strategy:
    name, kind = row.required_text("strategy"), _word(row, "strategy_kind", StrategyKind)
    if kind is StrategyKind.EAGER:
        return EAGER
    known = known_strategy(name.partition("+")[0])
    return Strategy(
        name=name,
        kind=kind or StrategyKind.COMPILE,
        backend=known.backend if known else None,
        mode=known.mode if known else None,
        cache=_word(row, "cache", CacheState) or CacheState.UNKNOWN,
        scope=row.text("scope") or "full",
    )


def _word(row: Fields, name: str, words: type[Word]) -> Word | None:
    text = row.text(name)
    if text is not None and text not in list(words):
        row.fail(name, f"must be one of {', '.join(words)}")
    return None if text is None else words(text)


def _object(row: Fields, name: str) -> Fields:
    """The JSON object that a cell holds, empty where it holds none."""
    text = row.text(name, 100_000)
    value = {} if text is None else load_json(text.encode(), row.place)
    return as_fields(row.place, value, name)


def _text(cell: str) -> str | None:
    """A cell without the apostrophe that keeps spreadsheets from running it, see `write.csv_cells`."""
    return (cell.removeprefix("'") if cell[1:2] in _RUN and cell[:1] == "'" else cell) or None


_RUN = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
