"""Our own record, one JSON object per line: `export --format jsonl` writes it, `import` reads it back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from db.interchange.files import InputFile
from db.interchange.options import ImportOptions
from db.records import Trial, parse_trial


def read(file: InputFile, _options: ImportOptions) -> Iterator[Trial]:
    """Every line's trial, exactly as it was written; the record says everything, so no option applies.

    Raises RecordError naming file, line and field.
    """
    for number, line in file.lines():
        if line.strip():
            yield parse_trial(line, where=f"{file.shown}, line {number}")


def write(trials: Iterable[Trial], output: BinaryIO) -> int:
    """One line per trial, UTF-8; returns how many."""
    count = 0
    for trial in trials:
        output.write(trial.to_json().encode())
        output.write(b"\n")
        count += 1
    return count
