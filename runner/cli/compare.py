"""`compilewatch compare`: two builds, judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer
from pydantic import ValidationError

from db.errors import ConfigError
from db.queries.filters import Filters
from db.queries.sides import resolve_side
from db.queries.stored_names import require_stored
from db.verdicts.policy import Policy
from runner.cli.filters import only
from runner.cli.judging import exit_code, judge, print_judged, say_undecided
from runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    MachineOption,
    MarkdownOption,
    StrategiesOption,
    WorkloadsOption,
    database_of,
    settings_of,
)


def compare(
    base: Annotated[
        str, typer.Argument(help="torch=2.12.0, driver=570.86, a label, a build or run id, previous.")
    ],
    head: Annotated[str, typer.Argument(help="The other side, such as latest.")],
    workload: WorkloadsOption = None,
    strategy: StrategiesOption = None,
    machine: MachineOption = None,
    margin: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="Smallest change of latency and speedup that counts: 0.02 is 2 %."
        ),
    ] = None,
    json_: JsonOption = False,
    markdown_: MarkdownOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """What got slower, what got faster, who moved.

    Example: compilewatch compare torch=2.12.1 torch=2.13.0

    latest is the build measured last, previous the one before it; imported ones stand for them only where
    nothing was measured. Exits 1 when a case regressed, 2 when nothing could be told.
    """
    settings = settings_of(config, db)
    policy = settings.policy if margin is None else _with_margin(settings.policy, margin)
    filters = Filters(workloads=tuple(workload or ()), strategies=tuple(strategy or ()))
    with database_of(settings, migrate=False) as database:
        sides = resolve_side(base, database), resolve_side(head, database)
        require_stored(database, replace(filters, machines=only(machine)))
        judged = judge(
            database,
            *sides,
            settings,
            policy=policy,
            filters=filters,
            machine=machine,
        )
    print_judged(judged, as_json=json_, as_markdown=markdown_)
    say_undecided(judged.comparison.verdict, judged)
    return exit_code(judged.comparison.verdict)


def _with_margin(policy: Policy, margin: float) -> Policy:
    try:
        return policy.with_margin(margin)
    except ValidationError as error:
        raise ConfigError(
            f"--margin must be more than 0 and at most 2, not {margin:g}.", "Write 0.02 for 2 %."
        ) from error
