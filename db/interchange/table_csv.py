"""CSV for spreadsheets: one row per trial, the columns of `db.interchange.flat`, without samples."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from datetime import datetime
from typing import BinaryIO

from db.csv_cells import harmless
from db.interchange.flat import KINDS, flat_rows
from db.records import Trial


def write(trials: Iterable[Trial], output: BinaryIO) -> int:
    """UTF-8 with a header; moments are RFC 3339, missing values are empty cells. Returns the row count."""
    text = io.TextIOWrapper(output, encoding="utf-8", newline="", write_through=True)
    writer = csv.DictWriter(text, fieldnames=list(KINDS), lineterminator="\n")
    writer.writeheader()
    count = 0
    for _, row in flat_rows(trials):
        writer.writerow({name: _cell(name, value) for name, value in row.items()})
        count += 1
    text.detach()
    return count


def _cell(name: str, value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return harmless(value) if isinstance(value, str) and KINDS[name] == "text" else value
