"""Parquet for notebooks: one row per trial, the columns of `db.interchange.flat` and the samples."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from db.interchange.flat import KINDS, flat_rows
from db.records import Trial

ROWS_PER_GROUP = 2_000
_TYPES: dict[str, Any] = {
    "text": pa.string(),
    "moment": pa.timestamp("us", tz="UTC"),
    "integer": pa.int64(),
    "float": pa.float64(),
    "flag": pa.bool_(),
}
_SAMPLES = (
    "warmup_ns",
    "samples_ns",
    "control_warmup_ns",
    "control_samples_ns",
    "host_samples_ns",
    "control_host_samples_ns",
)
SCHEMA = pa.schema(
    [
        *((name, _TYPES[kind]) for name, kind in KINDS.items()),
        *((name, pa.list_(pa.int64())) for name in _SAMPLES),
    ]
)


def write(trials: Iterable[Trial], output: BinaryIO) -> int:
    """Row groups of 2,000 trials, so that memory is constant; returns the row count."""
    count = 0
    rows = ({**row, **{name: getattr(trial, name) for name in _SAMPLES}} for trial, row in flat_rows(trials))
    with pq.ParquetWriter(pa.PythonFile(_Counted(output), mode="w"), SCHEMA, compression="zstd") as writer:
        while group := list(islice(rows, ROWS_PER_GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=SCHEMA))
            count += len(group)
    return count


class _Counted:
    """Tells pyarrow its position in a stream that may be a pipe and have none."""

    closed = False

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._position = 0

    def write(self, data: bytes) -> int:
        self._output.write(data)
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        self._output.flush()

    def close(self) -> None:
        """The stream belongs to the caller."""
