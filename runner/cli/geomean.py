"""`compilewatch geomean`: how many times faster each strategy makes a build's workloads, all together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pandas import DataFrame
from rich import box
from rich.table import Table
from rich.text import Text

from db.errors import NotFoundError
from db.metrics.canaries import without_canaries
from db.metrics.cases import summarize_cases
from db.metrics.geomean import CASE, matched_geomeans
from db.queries.filters import Filters
from db.queries.run_parts import of_newest_builds
from db.queries.stored_names import require_stored
from db.queries.trials import trials_frame
from db.units import MISSING, count, ratio
from runner.cli.documents import print_document
from runner.cli.filters import BuildsOption
from runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    WorkloadsOption,
    database_of,
    settings_of,
)
from runner.cli.result_table import console

SCHEMA = "compilewatch.geomean/1"
_LABELS = ("machine", "machine_id", "torch", "build_id", "task", "strategy")


def geomean_command(
    workload: WorkloadsOption = None,
    build: BuildsOption = None,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Geometric mean speedup by task and strategy: of each machine's newest build, or of --build.

    Example: compilewatch geomean
    """
    with database_of(settings_of(config, db), migrate=False) as database:
        filters = Filters(workloads=tuple(workload or ()), builds=tuple(build or ()))
        require_stored(database, filters)
        frames = [trials_frame(database, each) for each in of_newest_builds(database, filters)]
    rows = [row for frame in frames for row in geomean_rows(summarize_cases(without_canaries(frame)))]
    if not rows:
        raise NotFoundError(
            "No compiled case is stored.", "Measure eager and a compiled strategy with `compilewatch run`."
        )
    if json_:
        print_document({"schema": SCHEMA, "rows": rows})
        return 0
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("machine", "torch", "build", "task", "strategy"):
        table.add_column(heading)
    for heading in ("geomean speedup", "cases", "left out"):
        table.add_column(heading, justify="right")
    for row in rows:
        names = (row[name] or MISSING for name in ("machine", "torch", "build_id", "task", "strategy"))
        left_out = count(len(row["left_out"]))
        table.add_row(
            *(Text(str(name)) for name in names), ratio(row["speedup"]), count(row["cases"]), left_out
        )
    console().print(table)
    return 0


def geomean_rows(cases: DataFrame) -> Iterator[dict[str, Any]]:
    """One row per machine, build, task and compiled strategy of `summarize_cases`; JSON values.

    `speedup` is the geometric mean over the `cases` that passed, null over none; `left_out` names the others.
    """
    compiled = cases[cases["strategy_kind"] != "eager"]
    for _, group in compiled.groupby(["machine_id", "build_id", "task", "strategy"], sort=False):
        found = matched_geomeans({"build": group}, on=CASE)
        yield {
            **{name: group.iloc[0][name] for name in _LABELS},
            "speedup": found.sides["build"].matched,
            "cases": found.matched_cases,
            "left_out": [{"workload": case.workload, "reason": case.reason} for case in found.left_out],
        }
