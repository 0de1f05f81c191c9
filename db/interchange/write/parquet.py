"""Parquet for notebooks: one row per trial, the columns of `db.interchange.write.flat` and the samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from compilewatch.db.columns.column import Kind
from compilewatch.db.interchange.write.flat import KINDS, Column, FlatColumns
from compilewatch.db.queries.trial_export import TrialBatch
from compilewatch.db.tables.trials import SAMPLE_KINDS

ROWS_PER_GROUP = 2_000
_TYPES: dict[Kind, Any] = {
    Kind.TEXT: pa.string(),
    Kind.MOMENT: pa.timestamp("us", tz="UTC"),
    Kind.INTEGER: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.FLAG: pa.bool_(),
}
SCHEMA = pa.schema(
    [
        *((name, _TYPES[kind]) for name, kind in KINDS.items()),
        # Beside a median of the same name, an array says that it holds samples.
        *(
            (name.replace("_ns", "_samples_ns") if name in KINDS else name, pa.list_(pa.int64()))
            for name in SAMPLE_KINDS
        ),
    ]
)


def write(batches: Iterable[TrialBatch], output: BinaryIO) -> int:
    """Row groups of 2,000 trials, so that memory is constant; returns the row count."""
    flat = FlatColumns()
    count = 0
    with pq.ParquetWriter(pa.PythonFile(_Counted(output), mode="w"), SCHEMA, compression="zstd") as writer:
        tables = (_table(flat.of(batch), batch) for batch in batches)
        for table in _groups(tables):
            writer.write_table(table)
            count += len(table)
    return count


def _table(columns: dict[str, Column], batch: TrialBatch) -> pa.Table:
    # A latency that a summary tells is a whole number.
    filled = [
        pa.array(
            [None if v is None else float(v) for v in column] if kind is Kind.FLOAT else column,
            _TYPES[kind],
        )
        for column, kind in zip(columns.values(), KINDS.values(), strict=True)
    ]
    lists = [pa.array(values, pa.list_(pa.int64())) for values in batch.arrays().values()]
    return pa.Table.from_arrays([*filled, *lists], schema=SCHEMA)


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of ROWS_PER_GROUP."""
    waiting: list[pa.Table] = []
    rows = 0
    for table in tables:
        waiting.append(table)
        rows += len(table)
        if rows >= ROWS_PER_GROUP:
            together = pa.concat_tables(waiting).combine_chunks()
            yield together.slice(0, ROWS_PER_GROUP)
            waiting, rows = [together.slice(ROWS_PER_GROUP)], rows - ROWS_PER_GROUP
    if rows:
        yield pa.concat_tables(waiting).combine_chunks()


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
