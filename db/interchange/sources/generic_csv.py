"""Any CSV, one result per row, with a mapping from our fields to its columns.

Fields carry their unit: `latency_ms`, `eager_latency_us`, `compile_s`, `peak_gb`. Without a mapping the
columns must bear these names themselves. A cell like "0.493 (0.503)" is read as its first number; "nan",
"NA", "-" and an empty cell mean that there is no value. A unit behind a number, as in "12.5 ms" and "1.5x",
is turned into that of the field. A word such as OOM or an exception in place of a time is a failed trial. A
throughput without a latency is a latency per item. Without a strategy a latency is that of a compiled result
where its file has a column for eager beside it, else it must be told whether it was compiled.

In a long table, a metric a row, a column called `metric` or `metric_name` tells which figure a value is. A
case each are `forward`, `backward` and `full` in a column that means nothing else, and `x_value` by `x_name`.

Needed are `workload` (or `--workload`) and a latency or `throughput_per_s`; `eager_latency_*` or `speedup`
gives the control. Further fields: `task`, `dtype`, `batch_size`, `measured_at`, `torch`, `cuda`, `driver`,
`python`, `device`, `device_name`, `machine`, `suite`, `samples`, `compile_*`, `peak_*`, `eager_peak_*`,
`graphs`, `graph_breaks`, `failure`, `shape.NAME`, `package.NAME`, `metric.NAME`. To name: what has no column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

from compilewatch.db.columns import source_metrics
from compilewatch.db.errors import one_line
from compilewatch.db.interchange.files.fields import Fields, csv_header, csv_rows, moment
from compilewatch.db.interchange.files.foreign_trials import (
    SPEEDUP_ZERO,
    ForeignResult,
    compile_cost,
    compiled,
    compiler_counts,
    failed,
    stated_strategy,
    torch_facts,
)
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.sources.csv_mapping import (
    BYTES_OF_UNITS,
    FACTS,
    NS_OF_UNITS,
    first_cells,
    mapping_of,
    no_column,
)
from compilewatch.db.records.fields import INT64_MAX
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Failure, FailureKind, Memory, Strategy, Summary, Task

_WITH_UNIT = re.compile(r"([-+0-9.eE]{1,40}) ?([A-Za-z\u00b5\u03bc\u00d7/]{1,12})")
# What stands behind numbers in cells, by the fields that it can be a unit of: how many of the smallest.
_TIMES = {unit: int(scale) for unit, scale in source_metrics.NS_OF_UNITS.items()}
_SIZES = BYTES_OF_UNITS | {"b": 1, "byte": 1}
_TEXTS = ("workload", "strategy", "torch", "task", "failure", "measured_at")
_BARE = re.compile(r"[-+0-9.eE]{1,40}")
_PASSES = frozenset({"forward", "backward", "full", "fwd", "bwd"})
_Value = TypeVar("_Value")
_RATIOS = frozenset({"x", "\u00d7"})
# What people write in place of a figure that they did not get.
_FAILED = re.compile(
    r"(?:cuda |gpu )?(?:oom|out of memory)(?: error)?|time[ -]?out|timed out|(?:fail|crash|abort)(?:ed|ure)?"
    r"|err(?:or)?|[a-z_.]*(?:error|exception)(?:: .*)?",
    re.IGNORECASE,
)
_KINDS = {"oom|memory": FailureKind.OUT_OF_MEMORY, r"\btime": FailureKind.TIMEOUT}


def read(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per row; a row with an eager latency only is an eager trial.

    Raises UnmappedError for unknown columns, MissingFactError for a fact without a column,
    RecordError for a mapping that does not fit and for every cell that cannot be read.
    """
    mapping = mapping_of(file, options)
    if options.workload and "workload" in mapping:
        options.not_used(file.shown, "the workload of each row", f"--workload {options.workload}")
    header = csv_header(file)
    for column in options.where:
        if column not in header:
            raise no_column(file, header, column)
    long_table = _LongTable(mapping, header)
    for row in csv_rows(file, may_repeat=True):
        if all(row.data[column] == value for column, value in options.where.items()):
            cells = long_table.cells(row)
            data = {field: _plain(field, cells[column]) for field, column in mapping.items()}
            result = _result(Fields(row.place, data), dict(row.data), options)
            sizes, words = long_table.case(row)
            result.shape |= sizes
            result.workload = row.storable("workload", " ".join((result.workload, *words)))
            yield result


def _with_results(fields: Iterable[str]) -> Iterator[str]:
    """Those of `fields` one of which a result has: a time or rate of it, or its failure."""
    names = ("latency_", "eager_latency_", "throughput_per_s", "speedup", "failure")
    return (field for field in fields if field.startswith(names))


def unused_columns(file: InputFile, options: ImportOptions) -> dict[str, str]:
    """The columns that tell nothing, each with its first cell. Raises RecordError as `mapping_of` does."""
    mapping, header = mapping_of(file, options), csv_header(file)
    cells = first_cells(file, header)
    used = {*mapping.values(), *options.where, *_LongTable(mapping, header).used(cells)}
    return {name: cell for name, cell in cells.items() if name not in used}


class _LongTable:
    """A table with a figure a row: its unit stands in one column, which figure it is in another."""

    def __init__(self, mapping: Mapping[str, str], header: Sequence[str]) -> None:
        self._others = [column for column in header if column not in mapping.values()]
        called = {column: column.lower().replace(" ", "_") for column in self._others}
        self._metrics = [column for column, name in called.items() if name in ("metric", "metric_name")]
        units = [
            column for column, name in called.items() if name in ("unit", "units") or name.endswith("_unit")
        ]
        measured = [field for field in mapping if _quantity(field)]
        # With times beside sizes a unit is that of one of them, and nobody knows of which.
        self._unit = units[0] if len(units) == 1 and len({*map(_quantity, measured)}) == 1 else None
        self._columns = {mapping[field]: field for field in measured}
        self._axis = {name: column for column, name in called.items() if name in ("x_name", "x_value")}
        self._first: dict[str, str] = {}

    def used(self, cells: Mapping[str, str]) -> Iterator[str]:
        """The columns that tell something without a mapping, in a file whose first row is `cells`."""
        yield from (*self._metrics, *filter(None, (self._unit,)), *self._passes(cells))
        if "x_value" in self._axis:
            yield from self._axis.values()

    def _passes(self, cells: Mapping[str, str]) -> list[str]:
        return [column for column in self._others if cells[column].lower() in _PASSES]

    def case(self, row: Fields) -> tuple[dict[str, int], list[str]]:
        """By which sizes and words a row's case differs from others of its workload."""
        words = [row.data[column] for column in self._passes(row.data)]
        value = row.text(self._axis["x_value"], 60) if "x_value" in self._axis else None
        if value is None:
            return {}, words
        name = (row.text(self._axis["x_name"], 60) if "x_name" in self._axis else None) or "x"
        with suppress(InvalidOperation, OverflowError):
            number = Decimal(value)
            if number == int(number) and abs(number) <= INT64_MAX:
                return {name: int(number)}, words
        return {}, [*words, f"{name}={value}"]

    def cells(self, row: Fields) -> dict[str, str]:
        """The row, its figures with their unit. Raises RecordError for a unit of another quantity and for a
        second metric.
        """
        cells = dict(row.data)
        for name in self._metrics:
            first = self._first.setdefault(name, cells[name])
            if cells[name] != first:
                raise row.place.error(
                    name,
                    f"is {one_line(cells[name], 60)} here and {one_line(first, 60)} above: two metrics",
                    f'Choose one of them: --where "{name}={one_line(first, 60)}".',
                )
        unit = cells[self._unit] if self._unit else ""
        for column, field in self._columns.items() if unit else ():
            if _BARE.fullmatch(cells[column]) is None:
                continue
            if _in_unit_of(field, "1", unit.lower()) is None:
                measured = field.removesuffix("_per_s").rpartition("_")[0] or field
                raise row.place.error(
                    str(self._unit),
                    f"{one_line(unit, 60)} is no unit of {measured}",
                    "Choose the rows of one metric with --where COLUMN=VALUE.",
                )
            cells[column] += f" {unit}"
        return cells


def _quantity(field: str) -> str:
    """What a field measures, so which units it can have; empty of one without a unit."""
    unit = field.rpartition("_")[2]
    if field == "throughput_per_s":
        return "rate"
    return "time" if unit in NS_OF_UNITS else "size" if unit in BYTES_OF_UNITS else ""


def _plain(field: str, cell: str) -> str:
    """`cell` as a bare number in the unit of `field`, where it has another figure in brackets or a unit."""
    if field in FACTS or field in _TEXTS or field.startswith("package."):
        return cell
    head, bracket, rest = cell.partition("(")
    if bracket and rest.endswith(")") and len(head.split()) == 1:
        cell = head.strip()
    match = _WITH_UNIT.fullmatch(cell)
    return cell if match is None else _in_unit_of(field, match[1], match[2].lower()) or cell


def _in_unit_of(field: str, number: str, unit: str) -> str | None:
    """None where `unit` is none of what `field` is."""
    name, _, own = field.rpartition("_")
    if field == "speedup" and unit in _RATIOS:
        return number
    if field == "throughput_per_s":
        item, _, second = unit.rpartition("/")
        return number if second in ("s", "sec") and item not in _SIZES else None
    for units, known in ((NS_OF_UNITS, _TIMES), (BYTES_OF_UNITS, _SIZES)):
        if name and own in units and unit in known:
            with suppress(InvalidOperation):
                return str(Decimal(number) * known[unit] / units[own])
    return None


def _result(row: Fields, raw: Mapping[str, str], options: ImportOptions) -> ForeignResult:
    row, failure, of_eager = _without_words(row)
    speedup = row.number("speedup")
    if speedup == 0 and failure is None:
        failure = failed(SPEEDUP_ZERO)
    # Of what failed a 0 is as good as nothing: no figure of it is kept.
    latency, eager = (
        _scaled(row, name, NS_OF_UNITS, zero_too=failure is not None) for name in ("latency", "eager_latency")
    )
    rate = row.number("throughput_per_s")
    only_rate = failure is None and latency is None and eager is None and bool(rate)
    if only_rate and rate:
        # What is known is how long one item took.
        latency = row.whole("throughput_per_s", NS_OF_UNITS["s"] / rate)
    if failure is None and not latency and eager is None:
        row.fail("latency", "is missing, and no failure is named")
    of_all = options.workload if options.workload and "workload" not in row.data else None
    name = row.storable("workload", of_all) if of_all else row.required_text("workload")
    is_eager = of_eager or (latency is None and failure is None)
    strategy = EAGER if is_eager else _strategy(row, options)
    only_eager = strategy == EAGER and latency is None
    if only_eager:
        latency, eager = eager, None
    if eager is None and latency is not None and speedup:
        eager = row.whole("speedup", latency * speedup)
    return ForeignResult(
        place=row.place,
        workload=name,
        items_per_iteration=1.0 if only_rate else None,
        strategy=strategy,
        raw=dict(raw),
        stated=_facts(row),
        shape=_named(row, "shape", row.sizes),
        failure=failure,
        parts={} if failure else _parts(row, latency, eager, only_eager=only_eager),
    )


def _without_words(row: Fields) -> tuple[Fields, Failure | None, bool]:
    """The row without words such as OOM in place of a figure, the failure that it tells, and whether that is
    eager's in a row for both.
    """
    message = row.text("failure", 1000)
    words = {field: cell for field in _with_results(row.data) if _FAILED.fullmatch(cell := row.data[field])}
    words.pop("failure", None)
    row = Fields(row.place, {**row.data, **dict.fromkeys(words, "")})
    # Beside a time of its own it is eager that failed.
    own = [cell for field, cell in words.items() if not field.startswith("eager_")]
    if message is not None or not words or not (own or not any(map(row.says, _with_results(row.data)))):
        return row, None if message is None else failed(message), False
    word = (own or list(words.values()))[0]
    kind = next((kind for part, kind in _KINDS.items() if re.search(part, word.lower())), FailureKind.CRASH)
    return row, failed(f"The table says {word} in place of a time.", kind), not own


def _strategy(row: Fields, options: ImportOptions) -> Strategy | None:
    """None where neither the row nor the columns of its file tell it."""
    word = row.text("strategy")
    if word is not None:
        return stated_strategy(word, row.place, options)
    beside_eager = any(field == "speedup" or field.startswith("eager_latency_") for field in row.data)
    return compiled("compiled") if beside_eager else None


def _parts(row: Fields, latency: int | None, eager: int | None, *, only_eager: bool) -> dict[str, Any]:
    compile_ns = _scaled(row, "compile", NS_OF_UNITS)
    return {
        "summary": Summary(
            latency_ns=latency,
            control_latency_ns=eager,
            n=row.count("samples"),
            throughput_per_s=row.number("throughput_per_s"),
            metrics=_named(row, "metric", row.figures),
        ),
        "cold_start": compile_cost(compile_ns),
        "memory": _memory(row, only_eager=only_eager),
        "compiler": compiler_counts(row.count("graphs"), row.count("graph_breaks")),
    }


def _memory(row: Fields, *, only_eager: bool) -> Memory | None:
    """Peaks; what a row that is eager's tells of eager is its own."""
    peak, eager_peak = _scaled(row, "peak", BYTES_OF_UNITS), _scaled(row, "eager_peak", BYTES_OF_UNITS)
    if only_eager and eager_peak is not None:
        peak, eager_peak = eager_peak, None
    return Memory(peak_bytes=peak, control_peak_bytes=eager_peak) if peak or eager_peak else None


def _facts(row: Fields) -> dict[str, Any]:
    torch, task = row.text("torch"), row.text("task")
    if task is not None and task not in list(Task):
        row.fail("task", f"must be one of {', '.join(Task)}")
    return {
        **(torch_facts(torch) if torch else {}),
        **row.words(FACTS),
        "task": Task(task) if task else None,
        "measured_at": moment(row, "measured_at"),
        "batch_size": row.count("batch_size") or None,
        "packages": _named(row, "package", row.words) or None,
    }


def _scaled(row: Fields, name: str, units: Mapping[str, int], *, zero_too: bool = True) -> int | None:
    """The value of the one column that carries `name` with a unit; one of 0 is refused unless `zero_too`."""
    read = row.scaled if zero_too else row.duration_ns
    cells = [(f"{name}_{unit}", read(f"{name}_{unit}", scale)) for unit, scale in units.items()]
    values = [(field, value) for field, value in cells if value is not None]
    if len(values) > 1:
        row.fail(values[1][0], f"is there twice, also as {values[0][0]}")
    return values[0][1] if values else None


def _named(row: Fields, group: str, read: Callable[[list[str]], dict[str, _Value]]) -> dict[str, _Value]:
    """What the fields of a group hold, by the name behind its point."""
    found = read([field for field in row.data if field.startswith(f"{group}.")])
    return {field.partition(".")[2]: value for field, value in found.items()}
