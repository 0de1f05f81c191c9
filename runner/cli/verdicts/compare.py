"""`compilewatch compare`: two builds, judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer
from pandas import DataFrame, concat
from pydantic import ValidationError

from db.engine.session import Database
from db.errors import ConfigError, NotFoundError
from db.judge.compare.strategies import compare_strategies
from db.judge.policy import Policy
from db.metrics.cases import summarize_cases
from db.metrics.eligibility import without_canaries
from db.metrics.geomean import CASE, matched_geomeans
from db.queries.filters import Filters
from db.queries.named import require_stored
from db.queries.run_parts import of_newest_builds
from db.queries.trials import trials_frame
from db.units import MISSING, count, ratio
from db.verdicts.sides import builds_named, resolve_sides
from runner.cli import completion
from runner.cli.options import (
    BuildsOption,
    ConfigOption,
    DatabaseOption,
    JsonOption,
    MachineOption,
    MarkdownOption,
    StrategiesOption,
    WorkloadsOption,
    database_of,
    machine_named,
    only,
    settings_of,
)
from runner.cli.verdicts.judging import ComparisonReport, exit_code, judge, print_comparison, print_undecided
from runner.output.documents import print_document
from runner.output.tables import console, plain_table

_STRATEGY = "strategy="


def compare(
    base: Annotated[
        str,
        typer.Argument(
            help="torch=2.12.0, driver=570.86, a label, a build or run id, previous.",
            autocompletion=completion.sides,
        ),
    ],
    head: Annotated[
        str, typer.Argument(help="The other side, such as latest.", autocompletion=completion.sides)
    ],
    workload: WorkloadsOption = None,
    strategy: StrategiesOption = None,
    machine: MachineOption = None,
    margin: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Minimum effect on latency and speedup: 0.02 is 2 %."),
    ] = None,
    json_: JsonOption = False,
    markdown_: MarkdownOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Compare two builds or runs: slower and faster cases, and who moved.

    Example: compilewatch compare torch=2.12.1 torch=2.13.0

    strategy=default strategy=max-autotune compares two strategies of the newest build.
    latest is the build measured last, previous the one before it. Imported builds count only where nothing
    is measured. Exits 1 when a case regresses, 2 when nothing can be decided.
    """
    settings = settings_of(config, db)
    policy = settings.policy if margin is None else _with_margin(settings.policy, margin)
    filters = Filters(workloads=tuple(workload or ()), strategies=tuple(strategy or ()))
    strategies = [side.removeprefix(_STRATEGY) for side in (base, head) if side.startswith(_STRATEGY)]
    if strategies:
        if len(strategies) != 2:
            raise ConfigError(
                "A strategy is compared with a strategy.", "Write strategy=NAME for both sides."
            )
        with database_of(settings, migrate=False) as database:
            mine = only(machine_named(database, machine))
            filters = Filters(workloads=tuple(workload or ()), machines=mine)
            report = _of_strategies(database, filters, strategies, policy)
        print_comparison(report, as_json=json_, as_markdown=markdown_)
        print_undecided(report.comparison.verdict, report)
        return exit_code(report.comparison.verdict)
    with database_of(settings, migrate=False) as database:
        require_stored(database, filters)
        sides = resolve_sides(base, head, database, machine_named(database, machine))
        report = judge(
            database,
            sides.base,
            sides.head,
            settings,
            policy=policy,
            filters=filters,
            machine=sides.machine_id,
            said=sides.said,
        )
    print_comparison(report, as_json=json_, as_markdown=markdown_)
    print_undecided(report.comparison.verdict, report)
    return exit_code(report.comparison.verdict)


def _of_strategies(
    database: Database, filters: Filters, strategies: Sequence[str], policy: Policy
) -> ComparisonReport:
    """Of the newest build of each machine; the machine with most workloads in common is judged."""
    require_stored(database, replace(filters, strategies=tuple(strategies)))
    frames = [trials_frame(database, each) for each in of_newest_builds(database, filters)]
    base, head = strategies
    comparison = compare_strategies(concat(frames, ignore_index=True), base, head, policy)
    return ComparisonReport(comparison, targets=(), states={}, imported=False, explanations={})


def _with_margin(policy: Policy, margin: float) -> Policy:
    try:
        return policy.with_margin(margin)
    except ValidationError as error:
        raise ConfigError(
            f"--margin must be more than 0 and at most 2, not {margin:g}.", "Write 0.02 for 2 %."
        ) from error


# `compilewatch geomean`: how many times faster each strategy makes a build's workloads, all together.

SCHEMA = "compilewatch.geomean/1"
_LABELS = ("machine", "machine_id", "torch", "build_id", "task", "strategy")


def geomean_command(
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
