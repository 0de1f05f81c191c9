"""`compilewatch break-even`: when compilation has paid for itself, and which strategy to run."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

import typer
from db.queries.trials import latest_trials_frame
from pandas import DataFrame
from rich import box
from rich.table import Table
from rich.text import Text

from db.errors import NotFoundError
from db.metrics.break_even import Never, break_even, price
from db.metrics.case_modes import mode_options
from db.metrics.cases import summarize_cases
from db.metrics.mode_choice import ModeOption, best_option, lower_envelope
from db.metrics.quantities import Quantity
from db.queries.filters import Filters
from db.units import MISSING, NEVER, count, duration, money, steps
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
        cases = summarize_cases(latest_trials_frame(database, Filters(workloads=tuple(workload or ()))))
    hourly = None if price_per_hour is None else Decimal(str(price_per_hour))
    rows = [row for group in _groups(cases) for row in _rows(group, steps_, restarts_per_day, hourly)]
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


def _groups(cases: DataFrame) -> Iterator[DataFrame]:
    """The cases of one workload on one machine with its newest build."""
    for _, group in cases.groupby(["machine_id", "workload_id"], sort=False):
        newest = group.sort_values("last_started_at")["build_id"].iloc[-1]
        yield group[group["build_id"] == newest]


def _rows(group: DataFrame, steps_: int, restarts: int, hourly: Decimal | None) -> Iterator[dict[str, Any]]:
    options, left_out = mode_options(group)
    if not options:
        return
    best = best_option(options, steps_, restarts)
    firsts = {segment.strategy: segment.first_steps for segment in lower_envelope(options, restarts)}
    labels = group.iloc[0]
    common = {"workload": labels["workload"], "machine": labels["machine"], "torch": labels["torch"]}
    eager = options[0]
    for option in options:
        yield {
            **common,
            "strategy": option.strategy,
            **_repayment(option, eager, hourly),
            "total_ns": float(option.total(steps_, restarts).value),
            "chosen": option is best,
            "fastest_from_steps": firsts.get(option.strategy),
            "reason": None,
        }
    for case in left_out:
        yield {**common, "strategy": case.strategy, **_UNKNOWN, "reason": case.reason}


_UNKNOWN: dict[str, Any] = {
    "break_even_steps": None,
    "break_even_time_ns": None,
    "break_even_price": None,
    "total_ns": None,
    "chosen": False,
    "fastest_from_steps": None,
}


def _repayment(option: ModeOption, eager: ModeOption, hourly: Decimal | None) -> dict[str, Any]:
    """Break-even of `option` against `eager` in steps, time and money; all null for eager itself."""
    if option is eager:
        return {"break_even_steps": None, "break_even_time_ns": None, "break_even_price": None}
    point = break_even(compile_cost=option.compile_cost, compiled=option.latency, eager=eager.latency)
    time: Quantity | None = point.time
    return {
        "break_even_steps": NEVER if isinstance(point.steps, Never) else point.steps,
        "break_even_time_ns": None if time is None else float(time.value),
        "break_even_price": None if time is None or hourly is None else float(price(time, hourly)),
    }


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
