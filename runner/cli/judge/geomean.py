"""`compilewatch geomean`: how many times faster each strategy makes a build's workloads, all together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pandas import DataFrame

from compilewatch.db.errors import NotFoundError
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import without_canaries
from compilewatch.db.metrics.geomean import Interval, geomeans_by_strategy, geomeans_of_rows
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.queries.named import require_stored
from compilewatch.db.queries.run_parts import of_newest_builds
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.units import MISSING, count, interval, ratio
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
from compilewatch.runner.output.tables import console, plain_table, print_lines

SCHEMA = "compilewatch.geomean/1"
_BUILD = ("machine", "machine_id", "torch", "build_id")


def geomean(
    workload: WorkloadsOption = None,
    strategy: StrategiesOption = None,
    build: BuildsOption = None,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Geometric mean speedup by task and strategy, for each machine's newest build or --build.

    The matched set holds the workloads that passed with every strategy of the task, or every one named.

    Example: compilewatch geomean --strategy default --strategy max-autotune
    """
    with database_of(settings_of(config, db), migrate=False) as database:
        filters = Filters(
            workloads=tuple(workload or ()),
            strategies=tuple(strategy or ()),
            builds=builds_named(build or (), database),
        )
        require_stored(database, filters)
        # The eager that a case is set against is read whatever is chosen.
        frames = [
            trials_frame(database, replace(each, strategies=()))
            for each in of_newest_builds(database, filters)
        ]
    cases = [summarize_cases(without_canaries(frame)) for frame in frames]
    if strategy:
        cases = [each[each["strategy"].isin(strategy)] for each in cases]
    rows = [row for each in cases for row in geomean_rows(each)]
    if not rows:
        raise NotFoundError(
            "No compiled case is stored.", "Measure eager and a compiled strategy with `compilewatch run`."
        )
    if json_:
        print_document({"schema": SCHEMA, "rows": rows})
        return 0
    of_all = {"machine": "{machine}", "torch": "torch {torch}", "build_id": "build {build_id}"}
    apart = [name for name in of_all if len({row[name] for row in rows}) > 1]
    if shared := [text.format_map(rows[0]) for name, text in of_all.items() if name not in apart]:
        print_lines([", ".join(shared)])
    labels, sets = (*apart, "task", "strategy"), {"matched set": "matched_"}
    if any(row["cases"] != row["matched_cases"] for row in rows):
        sets["own set"] = ""
    figures = [heading for name in sets for heading in (f"{name} [95 %]", "cases")]
    cells = [
        (
            *(str(row[name] or MISSING) for name in labels),
            *(text for of in sets.values() for text in (_mean_text(row, of), count(row[f"{of}cases"]))),
            count(len(row["left_out"])),
        )
        for row in rows
    ]
    headings = (*(name.removesuffix("_id") for name in labels), *figures, "left out")
    console().print(plain_table(headings, cells, right=(*figures, "left out")))
    return 0


def geomean_rows(cases: DataFrame) -> Iterator[dict[str, Any]]:
    """One row per machine, build, task and compiled strategy of `summarize_cases`; JSON values.

    `speedup` is the geometric mean over the `cases` that passed, null over none; `left_out` names the others.
    `matched_speedup` is that over the `matched_cases` that passed with every strategy of the task, and
    `matched_left_out` has who keeps which workload out of them. Intervals are of 95 %, null where a case has
    fewer than three trials.
    """
    for _, of_build in cases.groupby(["machine_id", "build_id"], sort=False):
        every = row_dicts(of_build)
        for task, means in geomeans_by_strategy(every):
            for strategy, mean in means.sides.items():
                alone = geomeans_of_rows(
                    {strategy: [row for row in every if (row["task"], row["strategy"]) == (task, strategy)]},
                    on=("workload_id",),
                )
                own = alone.sides[strategy]
                yield {
                    **{name: every[0][name] for name in _BUILD},
                    "task": task,
                    "strategy": strategy,
                    "speedup": own.matched,
                    "speedup_interval": own.matched_interval,
                    "cases": alone.matched_cases,
                    "left_out": [
                        {"workload": each.workload, "reason": each.reason} for each in alone.left_out
                    ],
                    "matched_speedup": mean.matched,
                    "matched_interval": mean.matched_interval,
                    "matched_cases": means.matched_cases,
                    "matched_left_out": [
                        {"workload": each.workload, "strategy": each.side, "reason": each.reason}
                        for each in means.left_out
                    ],
                }


def _mean_text(row: dict[str, Any], of: str) -> str:
    ends: Interval | None = row[f"{of or 'speedup_'}interval"]
    bounds = f" [{interval(*ends, ratio)}]" if ends else ""
    return f"{ratio(row[f'{of}speedup'])}{bounds}"
