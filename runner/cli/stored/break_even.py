"""`compilewatch break-even`: when compilation has paid for itself, and which strategy to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import groupby
from typing import Annotated

import pandas as pd
import typer
from rich.table import Table

from compilewatch.db.errors import NotFoundError
from compilewatch.db.metrics.break_even import FIRST_LOOK, NOT_SHOWN, is_shown
from compilewatch.db.metrics.case_modes import with_strategies
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import without_canaries
from compilewatch.db.queries.named import require_stored
from compilewatch.db.queries.run_parts import of_newest_builds
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import origin_mark_of
from compilewatch.db.units import MISSING, count, duration, money
from compilewatch.db.verdicts.case_rows import Planned, break_even_document, break_even_rows
from compilewatch.db.verdicts.case_view import DOORS, Case, Door, case_texts
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
from compilewatch.runner.output.tables import (
    console,
    failure_lines,
    newest_failures,
    plain_table,
    print_lines,
)

# Each strategy has an eager of its own beside it; lines that meet have one.
_EAGER_OF_TOTALS = (
    "Totals take one eager step of a workload, the mean of all its processes, over each strategy's speedup."
)

# How the sizes of a row are written behind its workload's name.
_SIZES: tuple[Callable[[Case], str], ...] = (
    lambda case: case["task"],
    lambda case: "" if pd.isna(case["batch_size"]) else f"b{case['batch_size']}",
    lambda case: "x".join(str(size) for size in (case["shape"] or {}).values()),
    lambda case: case["dtype"],
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
    rows = [row for each in chosen for row in break_even_rows(each, steps_, restarts_per_day, hourly)]
    if not rows:
        raise NotFoundError(
            "No stored case has a latency to compare.",
            "Measure eager and a compiled strategy with `compilewatch run`.",
        )
    if json_:
        print_document(break_even_document(rows, steps_, restarts_per_day))
        return 0
    subject = "Build" if build else "Newest build"
    for _, mine in groupby(rows, key=lambda row: (row.case["machine_id"], row.case["build_id"])):
        of_build = list(mine)
        first = of_build[0].case
        torch = f"torch {first['torch']}, " if first["torch"] else ""
        print_lines([f"{subject} of {first['machine']}: {torch}build {first['build_id']}, all its runs"])
        console().print(_table(of_build, hourly is not None))
    print_lines([_EAGER_OF_TOTALS] if any(row.case["strategy"] != EAGER.name for row in rows) else [])
    unknown = [row.case for row in rows if row.plan["total_ns"] is None]
    named = {(case["build_id"], case["workload"], case["strategy"]) for case in unknown}
    print_lines(failure_lines({case: each for case, each in failures.items() if case in named}))
    return 0


def _label(case: Case, cases: Sequence[Case]) -> str:
    """The workload of a case; with whatever of its sizes tells it from others of this name in `cases`."""
    name = case["workload"] + origin_mark_of(case)
    alike = [other for other in cases if other["workload"] + origin_mark_of(other) == name]
    telling = [write(case) for write in _SIZES if len({write(other) for other in alike}) > 1]
    return " ".join([case["workload"], *filter(None, telling)]) + origin_mark_of(case)


def _lowest_not_shown(rows: Sequence[Planned]) -> list[Planned]:
    """Of each workload none of whose strategies is chosen the one with the lowest total; first looks have no
    rank.
    """
    lowest = []
    for _, group in groupby(rows, key=lambda row: row.case["workload_id"]):
        mine = list(group)
        known = [row for row in mine if row.plan["total_ns"] is not None and row.plan["reason"] != FIRST_LOOK]
        if len(known) > 1 and not any(row.plan["chosen"] for row in mine):
            lowest.append(min(known, key=lambda row: row.plan["total_ns"]))
    return lowest


def _table(rows: Sequence[Planned], priced: bool) -> Table:
    of_case = DOORS[Door.BREAK_EVEN]
    figures = [
        *(each.heading for each in of_case),
        *(["in money"] if priced else []),
        "total",
        "fastest from",
    ]
    cells_of = []
    lowest, cases = _lowest_not_shown(rows), [row.case for row in rows]
    for row in rows:
        case, plan = row
        not_shown = not is_shown(case)
        first = plan["fastest_from_steps"]
        cells = [
            *case_texts(case, of_case),
            *([MISSING if not_shown else money(plan["break_even_price"])] if priced else []),
            duration(plan["total_ns"]),
            MISSING if first is None else f"step {count(first)}",
        ]
        reason = NOT_SHOWN if not_shown else plan["reason"] or ""
        verdict = "← choose" if plan["chosen"] else reason
        if any(row is each for each in lowest):
            verdict = f"lowest, {NOT_SHOWN}"
        cells_of.append((_label(case, cases), str(case["torch"]), case["strategy"], *cells, verdict))
    return plain_table(("workload", "torch", "strategy", *figures, "choice"), cells_of, right=figures)
