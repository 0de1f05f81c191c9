"""`compilewatch geomean`: how many times faster each strategy makes a build's workloads, all together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pandas import DataFrame

from compilewatch.db.errors import NotFoundError
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import without_canaries
from compilewatch.db.metrics.geomean import CASE, matched_geomeans
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.named import require_stored
from compilewatch.db.queries.run_parts import of_newest_builds
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.units import MISSING, count, ratio
from compilewatch.db.verdicts.sides import builds_named
from compilewatch.runner.cli.options import (
    BuildsOption,
    ConfigOption,
    DatabaseOption,
    JsonOption,
    WorkloadsOption,
    database_of,
    settings_of,
)
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.tables import console, plain_table

SCHEMA = "compilewatch.geomean/1"
_LABELS = ("machine", "machine_id", "torch", "build_id", "task", "strategy")


def geomean(
    workload: WorkloadsOption = None,
    build: BuildsOption = None,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Geometric mean speedup by task and strategy, for each machine's newest build or --build.

    Example: compilewatch geomean
    """
    with database_of(settings_of(config, db), migrate=False) as database:
        filters = Filters(workloads=tuple(workload or ()), builds=builds_named(build or (), database))
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
    names = ("machine", "torch", "build_id", "task", "strategy")
    figures = ("geomean speedup", "cases", "left out")
    cells = []
    for row in rows:
        numbers = (ratio(row["speedup"]), count(row["cases"]), count(len(row["left_out"])))
        cells.append((*(str(row[name] or MISSING) for name in names), *numbers))
    headings = (*(name.removesuffix("_id") for name in names), *figures)
    console().print(plain_table(headings, cells, right=figures))
    return 0


def geomean_rows(cases: DataFrame) -> Iterator[dict[str, Any]]:
    """One row per machine, build, task and compiled strategy of `summarize_cases`; JSON values.

    `speedup` is the geometric mean over the `cases` that passed, null over none; `left_out` names the others.
    """
    compiled = cases[cases["strategy_kind"] != "eager"]
    for _, group in compiled.groupby(["machine_id", "build_id", "task", "strategy"], sort=False):
        geomeans = matched_geomeans({"build": group}, on=CASE)
        yield {
            **{name: group.iloc[0][name] for name in _LABELS},
            "speedup": geomeans.sides["build"].matched,
            "cases": geomeans.matched_cases,
            "left_out": [{"workload": case.workload, "reason": case.reason} for case in geomeans.left_out],
        }
