"""What `torch.utils.benchmark.Compare` prints: a table per label, a column per description.

Shape: torch/utils/benchmark/utils/compare.py (`Table.render`). A column's description is a word for a
strategy; where it is not and `--strategy` names it, it follows the workload's name. Cells are medians in the
unit that the table ends with; rows are told apart by their threads, and by label and sub-label the workload.

A spread "(! 12%)" and colours are passed over. Not taken: what `env` says. To name: torch, device, dtype and
moment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from compilewatch.db.columns.source_metrics import NS_OF_UNITS
from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files.fields import Fields, Place
from compilewatch.db.interchange.files.foreign_trials import ForeignResult, stated_strategy
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.trial import Strategy, Summary, Task

_MOST_ROWS = 100_000
FIRST_LINE = re.compile(rb"\[-+(?: .*)? -+\]")
_LABEL = re.compile(r"\[-+(?: (?P<label>.*))? -+\]")
_THREADS = re.compile(r"(\d+) threads: -*")
_UNIT = re.compile(r"Times are in \w+ \((\w+)\)\.")
_BETWEEN = re.compile(r"  \|(?:  |$)")
_SPREAD = re.compile(r"\(! ?[\d.]+%\)")
_COLOUR = re.compile(r"\033\[[0-9;]*m")


@dataclass
class _Table:
    label: str
    columns: list[str] = field(default_factory=list)
    rows: list[tuple[Place, int | None, list[str]]] = field(default_factory=list)


def read(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per cell. Raises RecordError naming file and line."""
    table: _Table | None = None
    threads: int | None = None
    for number, raw in file.lines():
        place = Place(file.shown, number)
        line = _COLOUR.sub("", raw.decode("utf-8", errors="replace")).rstrip()
        if (label := _LABEL.fullmatch(line)) is not None:
            table, threads = _Table((label["label"] or "").strip()), None
        elif (unit := _UNIT.fullmatch(line)) is not None:
            if table is None or unit[1] not in NS_OF_UNITS:
                raise place.error("the unit", "belongs to no table, or is none of a time")
            yield from _results(table, NS_OF_UNITS[unit[1]], options)
            table = None
        elif table is None:
            if line.strip() and not line.startswith("(!"):
                raise place.error("the line", "is no part of a table of torch.utils.benchmark")
        elif (separator := _THREADS.fullmatch(line)) is not None:
            threads = Fields(place, {"threads": separator[1]}).count("threads")
        elif line.strip():
            cells = [cell.strip() for cell in _BETWEEN.split(line)]
            if len(table.rows) >= _MOST_ROWS:
                raise place.error("the table", f"has more than {_MOST_ROWS:,} rows")
            if table.columns:
                table.rows.append((place, threads, cells))
            else:
                table.columns = cells[1:]
    if table is not None:
        raise RecordError(f"{file.shown}: ends inside a table.", "Copy it to its last line, with the unit.")


def _results(table: _Table, scale: float, options: ImportOptions) -> Iterator[ForeignResult]:
    for place, threads, (name, *cells) in table.rows:
        for column, cell in zip(table.columns, cells, strict=False):
            text = _SPREAD.sub("", cell).strip()
            if not text:
                continue
            fields = Fields(place, {column: text})
            strategy, described = _strategy(column, place, options)
            workload = " ".join(filter(None, (table.label, name, described)))
            yield ForeignResult(
                place=place,
                workload=fields.storable("label", workload or "(no label)"),
                strategy=strategy,
                raw={"table": table.label, "row": name, "column": column, "threads": threads, "cell": text},
                stated={"threads": threads},
                assumed={"task": Task.FUNCTION},
                parts={"summary": Summary(latency_ns=fields.duration_ns(column, scale))},
            )


def _strategy(column: str, place: Place, options: ImportOptions) -> tuple[Strategy | None, str]:
    """The strategy that a column's description names, else the description itself."""
    if not column:
        return None, ""
    try:
        return stated_strategy(column, place, options), ""
    except RecordError:
        if options.strategy is None:
            raise
        return None, column
