"""Markdown for issues and pull requests: one table row per trial, in the units people read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, BinaryIO

from db import units
from db.interchange.flat import figures
from db.markdown_cells import as_it_stands
from db.queries.records import Stack
from db.queries.trial_batches import TrialBatch
from db.records import SourceKind
from db.wording.marks import origin_mark

_HEADER = (
    "Workload", "Strategy", "Device", "torch", "Measured", "Status", "Latency", "Speedup", "First result",
    "Peak memory", "Graph breaks", "Source",
)  # fmt: skip
_RIGHT_ALIGNED = {"Latency", "Speedup", "First result", "Peak memory", "Graph breaks"}


# The columns of numbers and moments, which need no escape: how they are read.
_SHOWN: dict[str, Callable[[Any], str]] = {
    "speedup": units.ratio,
    "time_to_first_result_ns": units.duration,
    "peak_bytes": units.size,
    "graph_breaks": units.count,
}


def write(batches: Iterable[TrialBatch], output: BinaryIO) -> int:
    """A GitHub-flavoured table, UTF-8; returns the row count."""
    output.write(_line(_HEADER))
    output.write(_line(["---:" if name in _RIGHT_ALIGNED else "---" for name in _HEADER]))
    cases: dict[Stack, str] = {}
    count = 0
    for batch in batches:
        for stack in set(batch.stacks) - cases.keys():
            cases[stack] = _case(stack)
        columns = {**batch.columns, **figures(batch)}
        shown = [
            [cases[stack] for stack in batch.stacks],
            map(units.moment, columns["started_at"]),
            [kind or status for kind, status in zip(columns["failure_kind"], columns["status"], strict=True)],
            map(_latency, columns["latency_ns"], columns["timing_method"]),
            *[map(read, columns[name]) for name, read in _SHOWN.items()],
            map(_source, columns["source_kind"], columns["source_name"]),
        ]
        output.write("".join(f"| {' | '.join(cells)} |\n" for cells in zip(*shown, strict=True)).encode())
        count += len(batch.stacks)
    return count


def _latency(value: float | None, method: str | None) -> str:
    return units.duration(value) + (origin_mark(None, None, method) if value is not None else "")


def _case(stack: Stack) -> str:
    """The cells that trials share."""
    workload = stack.workload
    batch = f", batch {workload.batch_size}" if workload.batch_size is not None else ""
    cells = (
        f"{workload.name} ({workload.task}, {workload.dtype}{batch})",
        stack.strategy.name,
        stack.machine.device_name,
        stack.build.torch,
    )
    return " | ".join(map(as_it_stands, cells))


@lru_cache
def _source(kind: str, name: str) -> str:
    return as_it_stands("measured" if kind == SourceKind.MEASURED else f"imported ({name})")


def _line(cells: Iterable[str]) -> bytes:
    return f"| {' | '.join(as_it_stands(cell) for cell in cells)} |\n".encode()
