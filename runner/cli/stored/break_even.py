"""`compilewatch break-even`: when compilation has paid for itself, and which strategy to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from typing import Annotated, Any

import typer
from rich.table import Table

from compilewatch.db.errors import NotFoundError
from compilewatch.db.metrics.break_even_rows import break_even_document
from compilewatch.db.metrics.case_modes import with_strategies
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import without_canaries
from compilewatch.db.metrics.repayment import FIRST_LOOK, NOT_SHOWN
from compilewatch.db.metrics.throughput import throughputs_text
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.named import require_stored
from compilewatch.db.queries.run_parts import of_newest_builds
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.marks import origin_mark_of
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.units import MISSING, at_best, count, duration, money, steps
from compilewatch.db.verdicts.sides import builds_named
from compilewatch.runner.cli.options import (
    BuildsOption,
    ConfigOption,
    DatabaseOption,
    JsonOption,
    StrategiesOption,
    WorkloadsOption,
    database_of,
    settings_of,
)
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.failures import failure_lines, newest_failures
from compilewatch.runner.output.tables import console, plain_table, print_lines

# Each strategy has an eager of its own beside it; lines that meet have one.
_EAGER_OF_TOTALS = (
    "Totals take one eager step of a workload, the mean of all its processes, over each strategy's speedup."
)

# How the sizes of a row are written behind its workload's name.
_SIZES: tuple[Callable[[dict[str, Any]], str], ...] = (
    lambda row: row["task"],
    lambda row: "" if row["batch_size"] is None else f"b{row['batch_size']}",
    lambda row: "x".join(str(size) for size in row["shape"].values()),
    lambda row: row["dtype"],
)


def break_even_command(
    workload: WorkloadsOption = None,
    strategy: StrategiesOption = None,
    build: BuildsOption = None,
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
    """Fastest strategy overall and its number of steps, for each machine's newest build or --build.

    Example: compilewatch break-even --steps 100000
    """
    with database_of(settings_of(config, db), migrate=False) as database:
        filters = Filters(workloads=tuple(workload or ()), builds=builds_named(build or (), database))
        require_stored(database, replace(filters, strategies=tuple(strategy or ())))
        frames = [trials_frame(database, each) for each in of_newest_builds(database, filters)]
    cases = [summarize_cases(without_canaries(frame)) for frame in frames]
    failures = {case: each for frame in frames for case, each in newest_failures(frame).items()}
    hourly = None if price_per_hour is None else Decimal(str(price_per_hour))
    chosen = (with_strategies(each, strategy or ()) for each in cases)
    document = break_even_document(chosen, steps_, restarts_per_day, hourly)
    rows = document["rows"]
    if not rows:
        raise NotFoundError(
            "No stored case has a latency to compare.",
            "Measure eager and a compiled strategy with `compilewatch run`.",
        )
    if json_:
        print_document(document)
        return 0
    subject = "Build" if build else "Newest build"
    for _, mine in groupby(rows, key=itemgetter("machine_id", "build_id")):
        of_build = list(mine)
        first = of_build[0]
        torch = f"torch {first['torch']}, " if first["torch"] else ""
        print_lines([f"{subject} of {first['machine']}: {torch}build {first['build_id']}, all its runs"])
        console().print(_table(of_build, hourly is not None))
    print_lines([_EAGER_OF_TOTALS] if any(row["strategy"] != EAGER.name for row in rows) else [])
    named = {(row["build_id"], row["workload"], row["strategy"]) for row in rows if row["total_ns"] is None}
    print_lines(failure_lines({case: each for case, each in failures.items() if case in named}))
    return 0


def _label(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> str:
    """The workload of a row; with whatever of its sizes tells it from others of this name in `rows`."""
    name = row["workload"] + origin_mark_of(row)
    alike = [other for other in rows if other["workload"] + origin_mark_of(other) == name]
    telling = [write(row) for write in _SIZES if len({write(other) for other in alike}) > 1]
    return " ".join([row["workload"], *filter(None, telling)]) + origin_mark_of(row)


def _lowest_not_shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each workload none of whose strategies is chosen the one with the lowest total; first looks have no
    rank.
    """
    lowest = []
    for _, group in groupby(rows, key=itemgetter("workload_id")):
        mine = list(group)
        known = [row for row in mine if row["total_ns"] is not None and row["reason"] != FIRST_LOOK]
        if len(known) > 1 and not any(row["chosen"] for row in mine):
            lowest.append(min(known, key=itemgetter("total_ns")))
    return lowest


def _table(rows: list[dict[str, Any]], priced: bool) -> Table:
    figures = [
        "throughput (eager)",
        "break-even",
        "in time",
        *(["in money"] if priced else []),
        "total",
        "fastest from",
    ]
    cells_of = []
    lowest = _lowest_not_shown(rows)
    for row in rows:
        not_shown = row["break_even_interval"] == "open"
        cells = [
            throughputs_text(
                row["item"] or "",
                row["throughput_per_s"],
                None if row["strategy"] == EAGER.name else row["control_throughput_per_s"],
            ),
            at_best(row["break_even_low_steps"]) if not_shown else steps(row["break_even_steps"]),
            MISSING if not_shown else duration(row["break_even_time_ns"]),
            *([MISSING if not_shown else money(row["break_even_price"])] if priced else []),
            duration(row["total_ns"]),
            MISSING if row["fastest_from_steps"] is None else f"step {count(row['fastest_from_steps'])}",
        ]
        reason = NOT_SHOWN if not_shown else row["reason"] or ""
        verdict = "← choose" if row["chosen"] else reason
        if any(row is each for each in lowest):
            verdict = f"lowest, {NOT_SHOWN}"
        cells_of.append((_label(row, rows), str(row["torch"]), row["strategy"], *cells, verdict))
    return plain_table(("workload", "torch", "strategy", *figures, "choice"), cells_of, right=figures)
