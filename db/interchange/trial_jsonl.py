"""Our own record, one JSON object per line: `export --format jsonl` writes it, `import` reads it back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from db.errors import RecordError
from db.interchange.files import InputFile
from db.interchange.options import ImportOptions
from db.quick_trials import QuickReader
from db.records import Trial, parse_trial

# Lines that are read together, so that the cost of a call is shared; bounded in bytes as well.
_TOGETHER = 100
_TOGETHER_BYTES = 2**20


def read(file: InputFile, _options: ImportOptions) -> Iterator[Trial]:
    """Every line's trial, exactly as it was written; the record says everything, so no option applies.

    Raises RecordError naming file, line and field.
    """
    for number, line in file.lines():
        if line.strip():
            yield parse_trial(line, where=f"{file.shown}, line {number}")


def read_to_store(file: InputFile) -> Iterator[Trial]:
    """As `read`, several times as fast; what it yields is for the store (see `db.quick_trials`)."""
    quick = QuickReader()
    for numbered in _together(file):
        found = quick.read([line for _, line in numbered])
        for (number, line), trial in zip(numbered, found, strict=True):
            yield parse_trial(line, where=f"{file.shown}, line {number}") if trial is None else trial


def _together(file: InputFile) -> Iterator[list[tuple[int, bytes]]]:
    """Numbered lines that are not empty, some at a time; before an error, those that come before it."""
    some: list[tuple[int, bytes]] = []
    size_bytes = 0
    try:
        for number, line in file.lines():
            if line and not line.isspace():
                some.append((number, line))
                size_bytes += len(line)
            if len(some) == _TOGETHER or size_bytes > _TOGETHER_BYTES:
                yield some
                some, size_bytes = [], 0
    except RecordError:
        yield some
        raise
    yield some


def write(trials: Iterable[Trial], output: BinaryIO) -> int:
    """One line per trial, UTF-8; returns how many."""
    return write_lines((trial.to_json().encode() for trial in trials), output)


def write_lines(lines: Iterable[bytes], output: BinaryIO) -> int:
    """Every line with its end; returns how many."""
    count = 0
    for line in lines:
        output.write(line + b"\n")
        count += 1
    return count
