"""Our own record, one JSON object per line: `export --format jsonl` writes it, `import` reads it back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from db.errors import RecordError
from db.interchange.files.opening import InputFile
from db.interchange.files.options import ImportOptions
from db.records.fast_json import QuickReader
from db.records.trial import Trial, parse_trial

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


def read_to_store(files: Iterable[InputFile], size: int, shares: Iterator[bool]) -> Iterator[list[Trial]]:
    """Trials of all `files` as `read` yields them, `size` at a time and several times as fast, for the store
    (see `db.records.fast_json`). Those whose turn is False are neither looked into nor yielded.
    """
    quick = QuickReader()
    some: list[Trial] = []
    mine = next(shares)
    for file, numbered, is_last in _together(files, size):
        if mine:
            some += _read_quickly(quick, file, numbered)
        if is_last:
            if mine:
                yield some
            some, mine = [], next(shares)
    if some:
        yield some


def _read_quickly(quick: QuickReader, file: InputFile, numbered: list[tuple[int, bytes]]) -> Iterator[Any]:
    trials = quick.read([line for _, line in numbered])
    for (number, line), trial in zip(numbered, trials, strict=True):
        yield parse_trial(line, where=f"{file.shown}, line {number}") if trial is None else trial


def _together(
    files: Iterable[InputFile], size: int
) -> Iterator[tuple[InputFile, list[tuple[int, bytes]], bool]]:
    """Numbered lines that are not empty, some at a time, and whether they are the last of `size`; before an
    error, those that come before it.
    """
    remaining = size
    for file in files:
        some: list[tuple[int, bytes]] = []
        room, size_bytes = min(_TOGETHER, remaining), 0
        try:
            for number, line in file.lines():
                if line and not line.isspace():
                    some.append((number, line))
                    size_bytes += len(line)
                if len(some) == room or size_bytes > _TOGETHER_BYTES:
                    remaining = remaining - len(some) or size
                    yield file, some, remaining == size
                    some, size_bytes = [], 0
                    room = min(_TOGETHER, remaining)
        except RecordError:
            yield file, some, False
            raise
        if some:
            remaining = remaining - len(some) or size
            yield file, some, remaining == size


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
