"""Which format a file has, from its first bytes; names decide nothing."""

from __future__ import annotations

import csv
import re

from db.errors import RecordError
from db.interchange.fields import require_commas
from db.interchange.files import MAX_DOCUMENT_BYTES, InputFile
from db.interchange.formats import Format
from db.interchange.timm_csv import column_prefix

# Keys that all stand within the first 64 KiB of a JSON file of that format, in this order of trial.
_JSON_MARKS: tuple[tuple[Format, tuple[str, ...]], ...] = (
    (Format.TRIAL, ("schema", "trial_id")),
    (Format.PYTEST_BENCHMARK, ("machine_info", "commit_info")),
    (Format.TORCHBENCH, ("environ", "metrics")),
    (Format.OPTIMUM, ("scenario", "launcher")),
    (Format.OPTIMUM, ("latency", "values", "unit")),
    (Format.OSS_V3, ("metric", "benchmark_values")),
)
_CHUNK_BYTES = 2**20
_TRANSFORMERS_MARK = b".latency.mean"


def detect(file: InputFile) -> Format:
    """The format of `file`. Raises RecordError when it is none of ours, a CSV of another separator, or an
    archive that expands too far.
    """
    head = file.head().lstrip()
    if not head:
        raise RecordError(f"{file.shown}: is empty.", "Check that it is the file you meant.")
    found = _json_format(head) if head[:1] in b"{[" else _csv_format(file, head)
    if found is None:
        _expand(file)
        raise RecordError(
            f"{file.shown}: is in no known format.",
            f"Name it with --format, one of {', '.join(Format)}.",
        )
    return found


def _json_format(head: bytes) -> Format | None:
    for name, keys in _JSON_MARKS:
        if all(re.search(rb'"%s"\s*:' % key.encode(), head) for key in keys):
            return name
    return Format.TRANSFORMERS_CI if _TRANSFORMERS_MARK in head else None


def _csv_format(file: InputFile, head: bytes) -> Format | None:
    first_line = head.splitlines()[0].decode("utf-8", errors="replace")
    header = next(csv.reader([first_line]), [])
    if first_line.replace("\t", "").isprintable():
        require_commas(file, header)
    columns = {name.strip() for name in header}
    if "name" in columns and ("accuracy" in columns or {"speedup", "abs_latency"} <= columns):
        return Format.DYNAMO_CSV
    if "model" in columns and column_prefix(header):
        return Format.TIMM_CSV
    return Format.CSV if len(columns) > 1 and "\0" not in first_line else None


def _expand(file: InputFile) -> None:
    """Read on as far as a document may go: an archive that is a bomb says so."""
    with file.open() as stream:
        for _ in range(MAX_DOCUMENT_BYTES // _CHUNK_BYTES):
            if not stream.read(_CHUNK_BYTES):
                break
