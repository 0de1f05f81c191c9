"""Our own record, one JSON object per line: `export --format jsonl` writes it, `import` reads it back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.trial import Trial, parse_trial


def read(file: InputFile, _options: ImportOptions) -> Iterator[Trial]:
    """Every line's trial, exactly as it was written; the record says everything, so no option applies.

    Raises RecordError naming file, line and field.
    """
    for number, line in file.lines():
        if line.strip():
            yield parse_trial(line, where=f"{file.shown}, line {number}")


def write_lines(lines: Iterable[bytes], output: BinaryIO) -> int:
    """Every line with its end; returns how many."""
    count = 0
    for line in lines:
        output.write(line + b"\n")
        count += 1
    return count
