"""A trial as one flat row: the columns of the CSV and Parquet exports, named as in the queries' frames.

Times are ns, memory is bytes, moments are UTC. What is missing is empty (null in Parquet), never 0.
`latency_ns` is the median of the trial's headline array, or what the source's summary says where there is
none; `device_ns` and its like are medians of the arrays of their names.

Parquet for notebooks: one row per trial, the columns of `db.interchange.flat` and the samples.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from compilewatch.db.columns.column import Holder, Kind
from compilewatch.db.columns.trial import TRIAL
from compilewatch.db.engine.tables import SAMPLE_KINDS
from compilewatch.db.metrics.throughput import items_of, per_second
from compilewatch.db.queries.records import Stack, TrialBatch
from compilewatch.db.records.identity import code_name
from compilewatch.db.records.trial import Summary

# JSON is written as text.
_ORDER = (Kind.TEXT, Kind.MOMENT, Kind.INTEGER, Kind.FLOAT, Kind.FLAG)
_EXPORTED = [each for each in TRIAL if each.in_exports]
_KINDS = {each.column: Kind.TEXT if each.kind is Kind.JSON else each.kind for each in _EXPORTED}
KINDS: dict[str, Kind] = dict(sorted(_KINDS.items(), key=lambda named: _ORDER.index(named[1])))
"""Name -> kind of every column, in order."""
Column = Sequence[Any]


class FlatColumns:
    """Turns the batches of one export into columns; what trials share is worked out once."""

    def __init__(self) -> None:
        self._shared: dict[Stack, dict[str, Any]] = {}

    def of(self, batch: TrialBatch) -> dict[str, Column]:
        """Every column of KINDS, in its order; what is JSON in a record is JSON text."""
        for stack in set(batch.stacks) - self._shared.keys():
            self._shared[stack] = _of_stack(stack)
        shared = [self._shared[stack] for stack in batch.stacks]
        known = {
            **batch.columns,
            **{name: [each[name] for each in shared] for name in shared[0]},
            **figures(batch),
            "machine": batch.columns["machine_name"],
            "code": [
                code_name(*of_trial)
                for of_trial in zip(
                    *(batch.columns[name] for name in ("code_commit", "code_dirty", "code_hash")), strict=True
                )
            ],
            "metrics": [_metrics(summary) for summary in batch.summaries],
        }
        return {name: known[name] for name in KINDS}


_SHARED = (Holder.MACHINE, Holder.BUILD, Holder.WORKLOAD, Holder.STRATEGY)
_OF_STACK = {
    **{each.column: each.column for each in TRIAL if each.holder is Holder.SERIES},
    **{
        each.column: f"{each.holder}.{each.at}{'.value' if each.choices else ''}"
        for each in TRIAL
        if each.holder in _SHARED and each.kind is not Kind.JSON
    },
}


def _of_stack(stack: Stack) -> dict[str, Any]:
    settings, libraries, shape = stack.build.settings, stack.build.packages, stack.workload.shape
    texts = {"settings": settings, "packages": libraries, "shape": shape}
    return {
        **{name: attrgetter(place)(stack) for name, place in _OF_STACK.items()},
        **{name: json.dumps(value, sort_keys=True) for name, value in texts.items()},
    }


def _metrics(summary: Summary | None) -> str | None:
    return json.dumps(summary.metrics, sort_keys=True) if summary and summary.metrics else None


def figures(batch: TrialBatch) -> dict[str, Column]:
    """The columns that follow from others: latencies, speedup, throughput and the cost of compiling."""
    latency, control = _latencies(batch)
    return {
        "latency_ns": latency,
        "control_latency_ns": control,
        "speedup": [
            theirs / ours if theirs is not None and ours else None
            for ours, theirs in zip(latency, control, strict=True)
        ],
        "throughput_per_s": _throughput(batch, latency),
        "trial_compile_cost_ns": [
            # Of no calls nothing is taken off: a job tells a cost and may have no latency.
            until if calls == 0 else None if None in (until, calls, each) else until - calls * each
            for until, calls, each in zip(
                batch.columns["until_steady_ns"], batch.columns["calls_until_steady"], latency, strict=True
            )
        ],
    }


def _latencies(batch: TrialBatch) -> tuple[Column, Column]:
    """Medians; without samples the whole number of the summary, which the row holds as a float."""
    latency, control = list(batch.columns["latency_ns"]), list(batch.columns["control_latency_ns"])
    for place, summary in enumerate(batch.summaries):
        if summary is not None:
            if batch.columns["latency_p05_ns"][place] is None:
                latency[place] = summary.latency_ns
            if batch.columns["control_samples"][place] is None:
                control[place] = summary.control_latency_ns
    return latency, control


def _throughput(batch: TrialBatch, latency: Column) -> Column:
    """Items per second by the one rule; of what its source tells without a latency, as the source says."""
    rates: list[float | None] = []
    for stack, summary, each in zip(batch.stacks, batch.summaries, latency, strict=True):
        stated = summary.throughput_per_s if summary else None
        rates.append(per_second(items_of(vars(stack.workload))[0], each) if each else stated)
    return rates


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
