"""Markdown for issues and pull requests: one table row per trial, in the units people read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

from db import units
from db.interchange.flat import figures
from db.records import SourceKind, Trial

_HEADER = (
    "Workload", "Strategy", "Device", "torch", "Measured", "Status", "Latency", "Speedup", "First result",
    "Peak memory", "Graph breaks", "Source",
)  # fmt: skip
_RIGHT_ALIGNED = {"Latency", "Speedup", "First result", "Peak memory", "Graph breaks"}


def write(trials: Iterable[Trial], output: BinaryIO) -> int:
    """A GitHub-flavoured table, UTF-8; returns the row count."""
    output.write(_line(_HEADER))
    output.write(_line(["---:" if name in _RIGHT_ALIGNED else "---" for name in _HEADER]))
    count = 0
    for trial in trials:
        output.write(_line(_cells(trial)))
        count += 1
    return count


def _cells(trial: Trial) -> list[str]:
    row, workload, source = figures(trial), trial.workload, trial.source
    batch = f", batch {workload.batch_size}" if workload.batch_size is not None else ""
    return [
        f"{workload.name} ({workload.task}, {workload.dtype}{batch})",
        trial.strategy.name,
        trial.machine.device_name,
        trial.build.torch,
        units.moment(trial.started_at),
        row["failure_kind"] or row["status"],
        units.duration(row["latency_ns"]),
        units.ratio(row["speedup"]),
        units.duration(row["time_to_first_result_ns"]),
        units.size(row["peak_bytes"]),
        units.count(row["graph_breaks"]),
        "measured" if source.kind is SourceKind.MEASURED else f"imported ({source.name})",
    ]


def _line(cells: Iterable[str]) -> bytes:
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |\n".encode()


def _escaped(cell: str) -> str:
    """A cell that stays one: no column break, no line break, no HTML, no markup of the table's own."""
    flat = " ".join(cell.split())
    for character, replacement in (("\\", "\\\\"), ("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("`", "\\`")):
        flat = flat.replace(character, replacement)
    return flat
