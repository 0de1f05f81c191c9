"""CSV for spreadsheets: one row per trial, the columns of `db.interchange.flat`, without samples."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import BinaryIO

from db.csv_cells import harmless
from db.interchange.flat import KINDS, Column, FlatColumns
from db.queries.trial_batches import TrialBatch

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


def _cells(kind: str, column: Column) -> Column:
    match kind:
        case "moment":
            return [None if moment is None else _rfc_3339(moment) for moment in column]
        case "text":
            return [None if text is None else _text(text) for text in column]
    return column


def _rfc_3339(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


_text = lru_cache(_REMEMBERED)(harmless)
