"""Any CSV, one result per row, with a mapping from our fields to its columns.

Fields carry their unit: `latency_ms`, `eager_latency_us`, `compile_s`, `peak_gb`. Without a mapping the
columns must bear these names themselves. A cell like "0.493 (0.503)" is read as its first number; "nan",
"NA", "-" and an empty cell mean that there is no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from db.errors import RecordError
from db.interchange.fields import Fields, csv_header, csv_rows, moment
from db.interchange.files import InputFile
from db.interchange.imported import (
    SPEEDUP_ZERO,
    Result,
    compile_cost,
    counted_events,
    failed,
    strategy_called,
    to_trial,
    torch_facts,
)
from db.interchange.options import ImportOptions
from db.records import CompilerFacts, Memory, Strategy, Summary, Task, Trial
from db.strategies import EAGER

SOURCE = "csv"

_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_BYTES = {"bytes": 1, "mb": 10**6, "gb": 10**9, "mib": 2**20, "gib": 2**30}
_TIMES = ("latency", "eager_latency", "compile")
_SIZES = ("peak", "eager_peak")
_FACTS = ("device", "device_name", "machine", "cuda", "driver", "python", "dtype", "suite")
_OTHERS = (
    "workload", "strategy", "torch", "task", "measured_at", "batch_size", "speedup", "samples",
    "throughput_per_s", "graphs", "graph_breaks", "failure",
)  # fmt: skip
GROUPS = ("shape", "package", "metric")
FIELDS: tuple[str, ...] = (
    *_OTHERS,
    *_FACTS,
    *(f"{name}_{unit}" for name in _TIMES for unit in _NS),
    *(f"{name}_{unit}" for name in _SIZES for unit in _BYTES),
)


class UnmappedError(RecordError):
    """No column is known to hold what is needed; `columns` are the file's, each with its first cell."""

    def __init__(self, message: str, next_step: str, columns: Mapping[str, str]) -> None:
        super().__init__(message, next_step)
        self.columns = columns


_BRACKETED = re.compile(r"(\S+)\s*\([^)]*\)")


def read(file: InputFile, options: ImportOptions) -> Iterator[Trial]:
    """One trial per row; a row with an eager latency only is an eager trial.

    Raises UnmappedError where it is not known which columns to read, RecordError for a mapping that does not
    fit and for every cell that cannot be read.
    """
    mapping = _mapping(file, options)
    for row in csv_rows(file):
        data = {field: _plain(field, row.data[column]) for field, column in mapping.items()}
        yield to_trial(_result(Fields(row.place, data), dict(row.data)), SOURCE, options)


def _mapping(file: InputFile, options: ImportOptions) -> dict[str, str]:
    header = csv_header(file)
    mapping = dict(options.columns) or {name: name for name in header if is_field(name)}
    for field, column in mapping.items():
        if not is_field(field):
            raise RecordError(
                f"{file.shown}: {field}: is no field that a CSV can be mapped to.",
                f"Known are {', '.join(_OTHERS + _FACTS)}, times and sizes with their unit such as "
                "latency_ms, compile_s and peak_gb, and shape.NAME, package.NAME and metric.NAME.",
            )
        if column not in header:
            raise RecordError(
                f"{file.shown}, line 1: {column}: is no column of this file, and {field} is mapped to it.",
                f"Its columns are {', '.join(header)[:500]}.",
            )
    if "workload" not in mapping or not any("latency_" in field for field in mapping):
        raise UnmappedError(
            f"{file.shown}: no column is mapped to workload and to a latency; its columns are "
            f"{', '.join(header)[:500]}.",
            "Say which they are, such as --column workload=model --column latency_ms=time.",
            _first_cells(file, header),
        )
    return mapping


def _first_cells(file: InputFile, header: Sequence[str]) -> dict[str, str]:
    row = next(csv_rows(file), None)
    return {name: row.data[name] if row else "" for name in header}


def is_field(name: str) -> bool:
    """Whether a column can be mapped to `name`."""
    group, dot, rest = name.partition(".")
    return name in FIELDS or bool(dot and rest and group in GROUPS)


def _plain(field: str, cell: str) -> str:
    match = _BRACKETED.fullmatch(cell)
    numeric = field not in _FACTS and field not in ("workload", "strategy", "torch", "task", "failure")
    return match[1] if match and numeric else cell


def _result(row: Fields, raw: Mapping[str, str]) -> Result:
    failure = row.text("failure", 1000)
    speedup = row.number("speedup")
    if speedup == 0 and failure is None:
        failure = SPEEDUP_ZERO
    # Of what failed a 0 is as good as nothing: no figure of it is kept.
    latency, eager = (
        _scaled(row, name, _NS, zero_too=failure is not None) for name in ("latency", "eager_latency")
    )
    if failure is None and latency is None and eager is None:
        row.fail("latency", "is missing, and no failure is named")
    strategy = _strategy(row, latency)
    only_eager = strategy == EAGER and latency is None
    if only_eager:
        latency, eager = eager, None
    if eager is None and latency is not None and speedup:
        eager = row.whole("speedup", latency * speedup)
    return Result(
        place=row.place,
        workload=row.required_text("workload"),
        strategy=strategy,
        raw=dict(raw),
        said=_facts(row),
        shape={
            name: size for name in _group(row, "shape") if (size := row.count(f"shape.{name}")) is not None
        },
        failure=failed(failure) if failure else None,
        parts={} if failure else _parts(row, latency, eager, only_eager=only_eager),
    )


def _strategy(row: Fields, latency: int | None) -> Strategy:
    word = row.text("strategy")
    if word == EAGER.name or (latency is None and row.text("failure") is None):
        return EAGER
    return strategy_called(word or "compiled")


def _parts(row: Fields, latency: int | None, eager: int | None, *, only_eager: bool) -> dict[str, Any]:
    metrics = {name: row.number(f"metric.{name}") for name in _group(row, "metric")}
    compile_ns = _scaled(row, "compile", _NS)
    return {
        "summary": Summary(
            latency_ns=latency,
            control_latency_ns=eager,
            n=row.count("samples"),
            throughput_per_s=row.number("throughput_per_s"),
            metrics={name: value for name, value in metrics.items() if value is not None},
        ),
        "cold_start": compile_cost(compile_ns),
        "memory": _memory(row, only_eager=only_eager),
        "compiler": _compiler(row),
    }


def _memory(row: Fields, *, only_eager: bool) -> Memory | None:
    """Peaks; what a row that is eager's tells of eager is its own."""
    peak, eager_peak = _scaled(row, "peak", _BYTES), _scaled(row, "eager_peak", _BYTES)
    if only_eager and eager_peak is not None:
        peak, eager_peak = eager_peak, None
    return Memory(peak_bytes=peak, control_peak_bytes=eager_peak) if peak or eager_peak else None


def _compiler(row: Fields) -> CompilerFacts | None:
    graphs, breaks = row.count("graphs"), row.count("graph_breaks")
    if graphs is None and breaks is None:
        return None
    return CompilerFacts(graphs=graphs, graph_breaks=counted_events(breaks))


def _facts(row: Fields) -> dict[str, Any]:
    torch, task = row.text("torch"), row.text("task")
    if task is not None and task not in list(Task):
        row.fail("task", f"must be one of {', '.join(Task)}")
    packages = {name: row.text(f"package.{name}") for name in _group(row, "package")}
    return {
        **(torch_facts(torch) if torch else {}),
        **{name: row.text(name) for name in _FACTS},
        "task": Task(task) if task else None,
        "measured_at": moment(row, "measured_at"),
        "batch_size": row.count("batch_size") or None,
        "packages": {name: version for name, version in packages.items() if version} or None,
    }


def _scaled(row: Fields, name: str, units: Mapping[str, int], *, zero_too: bool = True) -> int | None:
    """The value of the one column that carries `name` with a unit; one of 0 is refused unless `zero_too`."""
    read = row.scaled if zero_too else row.duration_ns
    values = [(f"{name}_{unit}", read(f"{name}_{unit}", scale)) for unit, scale in units.items()]
    told = [(field, value) for field, value in values if value is not None]
    if len(told) > 1:
        row.fail(told[1][0], f"is told twice, also as {told[0][0]}")
    return told[0][1] if told else None


def _group(row: Fields, group: str) -> list[str]:
    return [field.partition(".")[2] for field in row.data if field.startswith(f"{group}.")]
