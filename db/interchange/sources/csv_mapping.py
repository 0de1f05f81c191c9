"""Which column of a CSV is which of our fields: as the user says, else the configuration, else its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from compilewatch.db.columns.source_metrics import unit_of
from compilewatch.db.errors import RecordError, one_line
from compilewatch.db.interchange.files.fields import Place, csv_header, csv_rows
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions

NS_OF_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
BYTES_OF_UNITS = {"bytes": 1, "mb": 10**6, "gb": 10**9, "mib": 2**20, "gib": 2**30}
FACTS = ("device", "device_name", "machine", "cuda", "driver", "python", "dtype", "suite")
GROUPS = ("shape", "package", "metric")
_OTHERS = (
    "workload", "strategy", "torch", "task", "measured_at", "batch_size", "speedup", "samples",
    "throughput_per_s", "graphs", "graph_breaks", "failure",
)  # fmt: skip
# Field -> what it tells, for the fields that carry a unit.
_STATED_BY = {
    f"{name}_{unit}": name for name in ("latency", "eager_latency", "compile") for unit in NS_OF_UNITS
}
_STATED_BY |= {f"{name}_{unit}": name for name in ("peak", "eager_peak") for unit in BYTES_OF_UNITS}
_CALLED = re.compile(r"[^a-z0-9]+")
_PLAIN = {"workload", "strategy", "batch_size", "dtype", *_STATED_BY}
FIELDS: tuple[str, ...] = (*_OTHERS, *FACTS, *_STATED_BY)


class UnmappedError(RecordError):
    """No column is known to hold what is needed; `columns` are the file's, each with its first cell."""

    def __init__(self, message: str, next_step: str, columns: Mapping[str, str]) -> None:
        super().__init__(message, next_step)
        self.columns = columns


def is_field(name: str) -> bool:
    """Whether a column can be mapped to `name`."""
    group, dot, rest = name.partition(".")
    return name in FIELDS or bool(dot and rest and group in GROUPS)


def mapping_of(file: InputFile, options: ImportOptions) -> dict[str, str]:
    """Field -> column. A column that is said to mean something does not mean its own name as well.

    Raises UnmappedError without a workload and a latency, RecordError for what is no field and for a column
    that the file lacks; one of the configuration only where the file needs it.
    """
    header = csv_header(file)
    stated = _stated(file, header, options)
    usual = _usual(file, header, options, stated)
    explicit = _over(usual, stated)
    meanings = {*explicit.values(), *options.meanings}
    mapping = _over(_own(name for name in header if name not in meanings), explicit)
    for field, column in mapping.items():
        _require_unit(file, field, column)
        if header.count(column) > 1:
            raise Place(file.shown, 1).error(f"'{column}'", "is the name of two columns")
    if not _suffices(mapping, options):
        wanted = "a latency" if options.workload else "workload and to a latency"
        raise UnmappedError(
            f"{file.shown}: no column is mapped to {wanted}; its columns are "
            f"{one_line(', '.join(header), 500)}.",
            "Name them, such as --column workload=model --column latency_ms=time; --workload names one.",
            first_cells(file, header),
        )
    return mapping


def not_used(columns: Iterable[str]) -> str:
    """The sentence that names columns which are no field."""
    return f"Not used: {one_line(', '.join(name or '(no name)' for name in columns), 500)}."


def _stated(file: InputFile, header: Sequence[str], options: ImportOptions) -> dict[str, str]:
    for field, column in options.columns.items():
        _require_field(file, field)
        if column not in header:
            raise no_column(file, header, column, f", and {field} is mapped to it")
    meanings = {field: column for column, field in options.meanings.items() if field and column in header}
    return {**meanings, **options.columns}


def _usual(
    file: InputFile, header: Sequence[str], options: ImportOptions, stated: Mapping[str, str]
) -> dict[str, str]:
    """What the configuration says of columns that the file has."""
    otherwise = _over(_own(header), stated)
    known = set(map(_quantity, otherwise))
    for field, column in options.usual_columns.items():
        _require_field(file, field)
        if column not in header and _quantity(field) not in known and not _suffices(otherwise, options):
            raise no_column(file, header, column, f", and {field} is mapped to it")
    return {field: column for field, column in options.usual_columns.items() if column in header}


def _require_field(file: InputFile, field: str) -> None:
    if not is_field(field):
        raise RecordError(
            f"{file.shown}: {field}: is no field that a CSV can be mapped to.",
            f"Known are {', '.join(_OTHERS + FACTS)}, times and sizes with their unit such as "
            "latency_ms, compile_s and peak_gb, and shape.NAME, package.NAME and metric.NAME.",
        )


def _require_unit(file: InputFile, field: str, column: str) -> None:
    """Raises RecordError where a column's name has another unit than the field it is mapped to."""
    name, _, unit = field.rpartition("_")
    written = unit_of(column)
    for units in (NS_OF_UNITS, BYTES_OF_UNITS):
        if field in _STATED_BY and unit in units and written in units and units[written] != units[unit]:
            raise RecordError(
                f"{file.shown}, line 1: {one_line(column)}: is in {written} by its name, "
                f"and {field} is mapped to it.",
                f'Name the column\'s own unit: --column "{name}_{written}={one_line(column)}".',
            )


def no_column(file: InputFile, header: Sequence[str], column: str, chosen_by: str = "") -> RecordError:
    """The error of a column that the file lacks; `told` follows the sentence."""
    return RecordError(
        f"{file.shown}, line 1: {one_line(column)}: is no column of this file{chosen_by}.",
        f"Its columns are {one_line(', '.join(header), 500)}.",
    )


def _own(names: Iterable[str]) -> dict[str, str]:
    """Field by the columns that are called so; of what can mean little else also as "Latency (ms)"."""
    named = list(names)
    alike = {_CALLED.sub("_", name.lower()).strip("_"): name for name in reversed(named)}
    exact = {name: name for name in named if is_field(name)}
    return {field: column for field, column in alike.items() if field in _PLAIN} | exact


def _over(lower: Mapping[str, str], upper: Mapping[str, str]) -> dict[str, str]:
    """Both, and `upper` where both tell the same, be it in another unit."""
    quantities = set(map(_quantity, upper))
    rest = {field: column for field, column in lower.items() if _quantity(field) not in quantities}
    return {**rest, **upper}


def _quantity(field: str) -> str:
    return _STATED_BY.get(field, field)


def _suffices(mapping: Iterable[str], options: ImportOptions) -> bool:
    quantities = set(map(_quantity, mapping))
    named = "workload" in quantities or options.workload is not None
    return named and not quantities.isdisjoint(("latency", "eager_latency", "throughput_per_s"))


def first_cells(file: InputFile, header: Sequence[str]) -> dict[str, str]:
    """Of each column what the first row has, empty without one."""
    row = next(csv_rows(file, may_repeat=True), None)
    return {name: row.data[name] if row else "" for name in header}
