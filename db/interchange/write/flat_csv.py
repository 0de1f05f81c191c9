"""CSV for spreadsheets: one row per trial, the columns of `db.interchange.write.flat`, without samples."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from functools import lru_cache
from typing import BinaryIO

from compilewatch.db.cells import harmless
from compilewatch.db.columns.column import Kind
from compilewatch.db.interchange.write.flat import KINDS, Column, FlatColumns
from compilewatch.db.queries.trial_export import TrialBatch

# How many different texts are remembered, so that what many rows share is looked at once.
_REMEMBERED = 10_000


def write(batches: Iterable[TrialBatch], output: BinaryIO) -> int:
    """UTF-8 with a header; moments are RFC 3339, missing values are empty cells. Returns the row count."""
    _write(output, [KINDS])
    flat = FlatColumns()
    count = 0
    for batch in batches:
        cells = [_cells(KINDS[name], column) for name, column in flat.of(batch).items()]
        _write(output, zip(*cells, strict=True))
        count += len(batch.stacks)
    return count


def _write(output: BinaryIO, rows: Iterable[Iterable[object]]) -> None:
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
