"""`compilewatch list cases`: stored cases as a table, JSON, CSV or Markdown, columns by name."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compilewatch.db.cause.notes import PAYS_BELOW_PERCENT
from compilewatch.db.cells import harmless, plain, table_row
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError
from compilewatch.db.queries.named import require_stored
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.trial import StrategyKind
from compilewatch.db.verdicts.case_rows import listed_cases
from compilewatch.db.verdicts.case_view import (
    CELLS,
    DOORS,
    LISTED,
    Case,
    Cell,
    Door,
    case_texts,
    case_view,
    rows_of_door,
)
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.tables import cells_named, console, plain_table, print_lines, print_markdown

Columns = Sequence[Cell]


def read_rows(database: Database, filters: Filters, door: Door) -> list[Case]:
    """The cases that `filters` let through; those that `door` has as rows."""
    require_stored(database, filters)
    return rows_of_door(listed_cases(database, filters), door)


@dataclass(frozen=True)
class Form:
    """How a list is printed; none of them: as a table."""

    json: bool = False
    csv: bool = False
    markdown: bool = False


def asked_columns(door: Door, names: str | None) -> Columns | None:
    """Those of a preset or those named; None where nothing is asked for. Raises ConfigError for both."""
    if names is None:
        return None if door is Door.RUN else DOORS[door]
    if door is not Door.RUN:
        raise ConfigError("A preset has columns of its own.", "Choose --preset or --columns.")
    return [CELLS["workload"], CELLS["strategy"], *cells_named(names)]


_MEASURED_BY = {
    Door.REGIONAL: "`compilewatch run -s default -s default+regional`",
    Door.VARIANTS: '`variants = ["float32", "bf16"]` of a [[workload]], and `compilewatch run`',
    Door.SCALING: "`ranks = [1, 2]` of a [[workload]], and `compilewatch run`",
}
"""What measures cases that a preset has as rows."""


def print_cases(rows: Sequence[Case], door: Door, asked: Columns | None, form: Form) -> None:
    """Without columns asked for, a table has those of `run`, JSON and CSV have every one and the notes."""
    if form.json or form.csv:
        cells = asked or LISTED
        if form.json:
            _print_json(rows, cells)
        else:
            _print_csv(rows, cells)
    elif not rows:
        with_what = _MEASURED_BY.get(door, "`compilewatch run`")
        print_lines([f"No stored case has a row in this table. Measure with {with_what}."])
    else:
        usual = (CELLS["workload"], CELLS["strategy"], *DOORS[Door.RUN], CELLS["notes"])
        _print_table(rows, asked or usual, markdown=form.markdown)


def _print_table(rows: Sequence[Case], columns: Columns, *, markdown: bool) -> None:
    """A table on a terminal, or of Markdown, with machine, torch and build where there are several."""
    apart = [
        CELLS[name]
        for name, telling in (("machine", "machine_id"), ("torch", "torch"), ("build_id", "build_id"))
        if len({row[telling] for row in rows}) > 1
    ]
    if _torch_tells(rows):
        apart = [each for each in apart if each.name != "build_id"]
    # Ends stand beside their figure where people read.
    shown = [*apart, *(each for each in columns if not each.name.endswith("_interval"))]
    headings = [each.heading for each in shown]
    cells = [case_texts(row, shown) for row in rows]
    if markdown:
        rule = " | ".join("---:" if each.right else "---" for each in shown)
        print_markdown([table_row(*headings), f"| {rule} |", *(table_row(*each) for each in cells)])
        return
    right = [each.heading for each in shown if each.right]
    console().print(plain_table(headings, cells, right=right, optional=_may_go(shown)))
    if any(each.name in ("gpu_utilization", "gpu_utilization_percent") for each in columns):
        print_lines([_how_often_idle_gpus_gain(rows)])


def _may_go(columns: Columns) -> list[str]:
    """Headings of figures in the order in which they go: first those that `run` does without too, the notes
    at last.
    """
    names = ("workload", "strategy", "machine", "torch", "build_id")
    figures = [each for each in reversed(columns) if each.name not in names]
    narrow = (*DOORS[Door.RUN_NARROW], CELLS["notes"])
    return [each.heading for each in sorted(figures, key=lambda each: each in narrow)]


def _how_often_idle_gpus_gain(rows: Sequence[Case]) -> str:
    """How often the rule of `PAYS_BELOW_PERCENT` is right: of eager cases below it and of the others, in how
    many a strategy of the same build is shown to be faster.
    """
    busy: dict[tuple[object, ...], float] = {}
    gains: dict[tuple[object, ...], bool] = {}
    for row in rows:
        place = tuple(row[name] for name in ("machine_id", "build_id", "workload_id"))
        if row["strategy_kind"] != StrategyKind.EAGER.value:
            if (low := plain(row["speedup_low"])) is not None:
                gains[place] = gains.get(place, False) or low > 1
        elif (utilization := plain(row["gpu_utilization_percent"])) is not None:
            busy[place] = utilization
    known = [(busy[place] < PAYS_BELOW_PERCENT, gains[place]) for place in busy.keys() & gains.keys()]
    if not known:
        return "No eager case here has a GPU utilization and a strategy whose speedup has an interval."
    below, above = ([gained for is_below, gained in known if is_below is side] for side in (True, False))
    return (
        f"Below {PAYS_BELOW_PERCENT} % of GPU utilization compiling is shown to pay in {sum(below)} of "
        f"{len(below)} eager cases, from there on in {sum(above)} of {len(above)}."
    )


def _torch_tells(rows: Sequence[Case]) -> bool:
    """Whether the builds of a machine have each a torch of its own."""
    builds = {(row["machine_id"], row["build_id"], row["torch"]) for row in rows}
    return len({(machine, torch) for machine, _, torch in builds}) == len(builds)


def _print_json(rows: Sequence[Case], cells: Columns) -> None:
    named = [_ids(row) | case_view(row, cells) for row in rows]
    # As /api/v1/cases: of all trials of a build, where a history has each run by itself.
    print_document({"schema": "compilewatch.list/1", "subject": "cases", "trials_of": "build", "rows": named})


def _print_csv(rows: Sequence[Case], cells: Columns) -> None:
    """A header and a line a case; nested values are JSON, what is missing is empty."""
    writer = csv.writer(sys.stdout)
    names = dict.fromkeys((*_IDS, *(each.name for each in cells)))
    writer.writerow(names)
    table = (_ids(row) | case_view(row, cells) for row in rows)
    writer.writerows([_csv_cell(row[name]) for name in names] for row in table)


_IDS = ("case_id", "machine", "build_id", "torch", "workload", "strategy")


def _ids(row: Case) -> dict[str, Any]:
    return {name: plain(row[name]) for name in _IDS}


def _csv_cell(value: Any) -> Any:
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
