"""`compilewatch break-even`: when compilation has paid for itself, and which strategy to run."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from db.errors import NotFoundError
from db.metrics.break_even_rows import break_even_rows
from db.metrics.canaries import without_canaries
from db.metrics.cases import summarize_cases
from db.queries.filters import Filters
from db.queries.stored_names import require_stored
from db.queries.trials import latest_trials_frame
from db.units import MISSING, count, duration, money, steps
from runner.cli.documents import print_document
from runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    WorkloadsOption,
    database_of,
    settings_of,
)
from runner.cli.result_table import console

SCHEMA = "compilewatch.break-even/1"


def break_even_command(
    workload: WorkloadsOption = None,
    steps_: Annotated[int, typer.Option("--steps", min=1, help="Steps per process.")] = 10_000,
    restarts_per_day: Annotated[
        int, typer.Option(min=0, help="Restarts a day; each pays the compile cost again.")
    ] = 0,
    price_per_hour: Annotated[
        float | None, typer.Option(min=0, help="Price of the device per hour, in $.")
    ] = None,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Which strategy is done first, and from how many steps on.

    Example: compilewatch break-even --steps 100000
    """
    with database_of(settings_of(config, db), migrate=False) as database:
        filters = Filters(workloads=tuple(workload or ()))
        require_stored(database, filters)
        latest = latest_trials_frame(database, filters)
    cases = summarize_cases(without_canaries(latest))
    hourly = None if price_per_hour is None else Decimal(str(price_per_hour))
    rows = break_even_rows(cases, steps_, restarts_per_day, hourly)
    if not rows:
        raise NotFoundError(
            "No stored case has a latency to compare.",
            "Measure eager and a compiled strategy with `compilewatch run`.",
        )
    if json_:
        print_document(
            {"schema": SCHEMA, "steps": steps_, "restarts_per_day": restarts_per_day, "rows": rows}
        )
        return 0
    console().print(_table(rows, hourly is not None))
    return 0


def _table(rows: list[dict[str, Any]], priced: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("workload", "torch", "strategy"):
        table.add_column(heading)
    headings = ["break-even", "in time", *(["in money"] if priced else []), "total", "fastest from"]
    for heading in headings:
        table.add_column(heading, justify="right")
    table.add_column("choice")
    for row in rows:
        cells = [
            steps(row["break_even_steps"]),
            duration(row["break_even_time_ns"]),
            *([money(row["break_even_price"])] if priced else []),
            duration(row["total_ns"]),
            MISSING if row["fastest_from_steps"] is None else f"step {count(row['fastest_from_steps'])}",
        ]
        verdict = "← choose" if row["chosen"] else row["reason"] or ""
        table.add_row(
            *(Text(str(row[key])) for key in ("workload", "torch", "strategy")), *cells, Text(verdict)
        )
    return table
