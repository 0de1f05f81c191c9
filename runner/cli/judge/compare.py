"""`compilewatch compare`: two builds, judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated

import typer
from pandas import DataFrame
from pydantic import ValidationError

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError
from compilewatch.db.judge.compare.strategies import compare_strategies, workloads_of_both
from compilewatch.db.judge.compare.whole import sentences
from compilewatch.db.judge.policy import Policy
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.named import require_stored
from compilewatch.db.queries.run_parts import of_newest_builds
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.units import first_of
from compilewatch.db.verdicts.sides import LATEST, PREVIOUS, resolve_sides
from compilewatch.runner.cli import completion
from compilewatch.runner.cli.judge.judging import (
    ComparisonReport,
    exit_code,
    judge,
    print_comparison,
    print_undecided,
)
from compilewatch.runner.cli.options import (
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
from compilewatch.runner.regressions.judged_runs import machine_here

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

    strategy=default strategy=max-autotune compares two strategies of the newest build of one machine: this
    one, else the one with most workloads of both. Eager is the one within each compiled trial.
    latest is the build measured last, previous the one before it, on this machine where it measured, else on
    that of the newest run. Imported builds count only where nothing is measured. Exits 1 when a case
    regresses, 2 when nothing can be decided.
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
        here = machine_here(database) if {base, head} & {LATEST, PREVIOUS} else None
        sides = resolve_sides(base, head, database, machine_named(database, machine) or here)
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
    """Of the newest build of one machine: this one, else the one with most workloads of both, else the one
    that measured last. The others are named.
    """
    compiled = tuple(name for name in strategies if name != EAGER.name)
    require_stored(database, replace(filters, strategies=compiled or (EAGER.name,)))
    frames = [trials_frame(database, each) for each in of_newest_builds(database, filters)]
    base, head = strategies
    here = machine_here(database)

    def rank(trials: DataFrame) -> tuple[bool, int, datetime]:
        common = workloads_of_both(trials, base, head)
        return bool(common) and here in set(trials["machine_id"]), common, trials["started_at"].max()

    mine = max(frames, key=rank)
    others = [each["machine"].iloc[-1] for each in frames if each is not mine and rank(each)[1]]
    comparison = compare_strategies(mine, base, head, policy)
    if others:
        said = f"Of {mine['machine'].iloc[-1]}; {first_of(others, 3)} measured both too: --machine NAME."
        comparison = comparison.model_copy(update={"said": (said,)})
        comparison = comparison.model_copy(update={"sentences": sentences(comparison)})
    return ComparisonReport(comparison, targets=(), states={}, imported=False, explanations={})


def _with_margin(policy: Policy, margin: float) -> Policy:
    try:
        return policy.with_margin(margin)
    except ValidationError as error:
        raise ConfigError(
            f"--margin must be more than 0 and at most 2, not {margin:g}.", "Write 0.02 for 2 %."
        ) from error
