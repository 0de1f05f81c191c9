"""The way out: the trials that a filter selects, streamed into one file of a chosen format."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from compilewatch.db import units
from compilewatch.db.cells import escaped_text, harmless
from compilewatch.db.columns.column import Kind
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.interchange import oss_v3_export
from compilewatch.db.interchange.files import trial_jsonl
from compilewatch.db.interchange.flat import KINDS, Column, FlatColumns, figures
from compilewatch.db.interchange.oss_v3_export import accuracy_of
from compilewatch.db.part_files import part_of
from compilewatch.db.queries.records import Stack, TrialBatch, trial_batches, trial_lines
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.trial import SourceKind, origin_mark

# The accuracy that PyTorch's CI expects, as its lists have it in `benchmarks/dynamo/ci_expected_accuracy`.
# Shape: update_expected.py beside them: `name,accuracy,graph_breaks`, a model a row in the order of their
# names, three empty lines between rows, which keep two changes of one list from a conflict.
_EXPECTED_HEADER = ("name", "accuracy", "graph_breaks")
_BETWEEN_ROWS = "\n\n\n\n"
_SHOWN_NAMES = 5


def write_expected_accuracy(batches: Iterable[TrialBatch], output: BinaryIO, notes: list[str]) -> int:
    """The newest trial of each workload as a row; returns how many.

    Raises CompilewatchError where they are of several strategies, or none has a verdict on its accuracy.
    `notes` takes in what a list should not be changed by: models of which nothing was compiled.
    """
    rows: dict[str, tuple[str, str, int | None]] = {}
    strategies: set[str] = set()
    uncompiled: set[str] = set()
    trials = 0
    for batch in batches:
        columns, trials = batch.columns, trials + len(batch.stacks)
        statuses = zip(
            batch.stacks,
            columns["failure_kind"],
            columns["failure_message"],
            columns["numerics_status"],
            columns["graphs"],
            columns["graph_breaks"],
            strict=True,
        )
        for stack, failure_kind, message, status, graphs, breaks in statuses:
            accuracy = accuracy_of(failure_kind, status, message)
            if accuracy is None:
                continue
            name = stack.workload.name
            strategies.add(stack.strategy.name)
            rows[name] = (name, accuracy, breaks)
            (uncompiled.add if graphs == 0 else uncompiled.discard)(name)
    if len(strategies) > 1:
        named = ", ".join(sorted(strategies)[:_SHOWN_NAMES])
        raise CompilewatchError(
            f"A list of expected accuracy is of one strategy, and these trials are of {named}.",
            "Name it with --strategy.",
        )
    if trials and not rows:
        raise CompilewatchError(
            "None of these trials says whether its result is right.", "Import the accuracy files too."
        )
    if uncompiled:
        named = ", ".join(sorted(uncompiled)[:_SHOWN_NAMES])
        notes.append(f"0 graphs were compiled of {named}: look before the list is changed by it.")
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=_BETWEEN_ROWS).writerows(
        [_EXPECTED_HEADER, *(rows[name] for name in sorted(rows))]
    )
    output.write(text.getvalue().encode())
    return len(rows)


# How many different texts are remembered, so that what many rows share is looked at once.
_REMEMBERED = 10_000


def write_csv(batches: Iterable[TrialBatch], output: BinaryIO) -> int:
    """UTF-8 with a header; moments are RFC 3339, missing values are empty cells. Returns the row count."""
    _write_rows(output, [KINDS])
    flat = FlatColumns()
    count = 0
    for batch in batches:
        cells = [_cells(KINDS[name], column) for name, column in flat.of(batch).items()]
        _write_rows(output, zip(*cells, strict=True))
        count += len(batch.stacks)
    return count


def _write_rows(output: BinaryIO, rows: Iterable[Iterable[object]]) -> None:
    # Not through a wrapper, which would close `output` where a write to it fails.
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    output.write(text.getvalue().encode())


def _cells(kind: Kind, column: Column) -> Column:
    match kind:
        case Kind.MOMENT:
            return [
                None if moment is None else moment.isoformat().replace("+00:00", "Z") for moment in column
            ]
        case Kind.TEXT:
            return [None if text is None else _text(text) for text in column]
    return column


_text = lru_cache(_REMEMBERED)(harmless)


# Markdown for issues and pull requests: one table row per trial, in the units people read.

_HEADER = (
    "Workload", "Strategy", "Device", "torch", "Measured", "Status", "Latency", "Speedup", "First result",
    "Peak memory", "Graph breaks", "Source",
)  # fmt: skip
_RIGHT_ALIGNED = {"Latency", "Speedup", "First result", "Peak memory", "Graph breaks"}


# The columns of numbers and moments, which need no escape: how they are read.
_SHOWN: dict[str, Callable[[Any], str]] = {
    "speedup": units.ratio,
    "time_to_first_result_ns": units.duration,
    "peak_bytes": units.size,
    "graph_breaks": units.count,
}


def write_markdown(batches: Iterable[TrialBatch], output: BinaryIO) -> int:
    """A GitHub-flavoured table, UTF-8; returns the row count."""
    output.write(_line(_HEADER))
    output.write(_line(["---:" if name in _RIGHT_ALIGNED else "---" for name in _HEADER]))
    cases: dict[Stack, str] = {}
    count = 0
    for batch in batches:
        for stack in set(batch.stacks) - cases.keys():
            cases[stack] = _case(stack)
        columns = {**batch.columns, **figures(batch)}
        shown = [
            [cases[stack] for stack in batch.stacks],
            map(units.moment, columns["started_at"]),
            [kind or status for kind, status in zip(columns["failure_kind"], columns["status"], strict=True)],
            map(_latency, columns["latency_ns"], columns["timing_method"]),
            *[map(read, columns[name]) for name, read in _SHOWN.items()],
            map(_source, columns["source_kind"], columns["source_name"]),
        ]
        output.write("".join(f"| {' | '.join(cells)} |\n" for cells in zip(*shown, strict=True)).encode())
        count += len(batch.stacks)
    return count


def _latency(value: float | None, method: str | None) -> str:
    return units.duration(value) + (origin_mark(None, None, method) if value is not None else "")


def _case(stack: Stack) -> str:
    """The cells that trials share."""
    workload = stack.workload
    batch = f", batch {workload.batch_size}" if workload.batch_size is not None else ""
    cells = (
        f"{workload.name} ({workload.task}, {workload.dtype}{batch})",
        stack.strategy.name,
        stack.machine.device_name,
        stack.build.torch,
    )
    return " | ".join(map(escaped_text, cells))


@lru_cache
def _source(kind: str, name: str) -> str:
    return escaped_text("measured" if kind == SourceKind.MEASURED else f"imported ({name})")


def _line(cells: Iterable[str]) -> bytes:
    return f"| {' | '.join(escaped_text(cell) for cell in cells)} |\n".encode()


Writer = Callable[[Iterable[TrialBatch], BinaryIO], int]


class ExportFormat(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    OSS_V3 = "oss-v3"
    MARKDOWN = "markdown"
    DYNAMO_EXPECTED = "dynamo-expected"


def _write_parquet(batches: Iterable[TrialBatch], output: BinaryIO) -> int:
    """Loads pyarrow, half a second, only where it is used."""
    from compilewatch.db.interchange import flat as parquet

    return parquet.write(batches, output)


WRITERS: dict[ExportFormat, Writer] = {
    ExportFormat.CSV: write_csv,
    ExportFormat.PARQUET: _write_parquet,
    ExportFormat.OSS_V3: oss_v3_export.write,
    ExportFormat.MARKDOWN: write_markdown,
}


# What a name may end in; an OSS v3 file has one JSON record per line, as ours has.
_OF_SUFFIX: dict[str, tuple[ExportFormat, ...]] = {
    ".jsonl": (ExportFormat.JSONL, ExportFormat.OSS_V3),
    ".csv": (ExportFormat.CSV, ExportFormat.DYNAMO_EXPECTED),
    ".parquet": (ExportFormat.PARQUET,),
    ".md": (ExportFormat.MARKDOWN,),
    ".markdown": (ExportFormat.MARKDOWN,),
}


def format_of(output: Path | None, name: str | None) -> str:
    """The format called `name`, else that of the suffix of `output`, else jsonl.

    Raises CompilewatchError where the name is that of another format.
    """
    fitting = _OF_SUFFIX.get(output.suffix.lower(), ()) if output else ()
    if name is None:
        return fitting[0] if fitting else ExportFormat.JSONL
    if fitting and name in list(ExportFormat) and name not in fitting:
        raise CompilewatchError(
            f"{output}: is the name of a {fitting[0]} file, and --format is {name}.",
            "Leave out --format, or give the file another suffix.",
        )
    return name


def export(
    db: Database, filters: Filters, *, format: str, output: BinaryIO | Path, notes: list[str] | None = None
) -> int:
    """Write every trial that `filters` selects, oldest first; returns how many.

    `notes` takes in sentences on what was written. Memory does not grow with their number. A path is replaced
    only once the whole file is written.
    Raises CompilewatchError for an unknown format or a path that cannot be written.
    """
    if format not in list(ExportFormat):
        raise CompilewatchError(
            f"{format}: is no format that can be exported.", f"Known are {', '.join(ExportFormat)}."
        )
    opened = _replacing(output) if isinstance(output, Path) else contextlib.nullcontext(output)
    with opened as stream:
        if format == ExportFormat.JSONL:
            return trial_jsonl.write_lines(trial_lines(db, filters), stream)
        if format == ExportFormat.DYNAMO_EXPECTED:
            return write_expected_accuracy(trial_batches(db, filters), stream, [] if notes is None else notes)
        return WRITERS[ExportFormat(format)](trial_batches(db, filters), stream)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file beside `path` that takes its place when the block ends well, and is removed when not."""
    try:
        with part_of(path) as part:
            with part.open("xb") as stream:
                yield stream
            part.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> CompilewatchError:
    return CompilewatchError(
        f"{path}: cannot be written ({error.strerror or error}).",
        "Check the folder, its permissions and space.",
    )
