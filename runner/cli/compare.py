"""`compilewatch compare` and `gate`: the one judge, asked from the command line."""

from __future__ import annotations

import sys
from typing import Annotated

import pandas as pd
import typer

from db.errors import NotFoundError
from db.queries import facets
from db.queries.filters import Filters
from db.queries.sides import resolve_side
from db.queries.trials import trials_frame
from db.session import Database
from db.units import count
from db.verdicts.results import Comparison
from db.verdicts.sides import Selection
from db.verdicts.upgrade import compare_builds
from db.verdicts.vocabulary import Verdict
from runner.cli.comparison_text import comparison_table, markdown, regression_line, summary_lines
from runner.cli.documents import print_document
from runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    StrategiesOption,
    WorkloadsOption,
    database_of,
    settings_of,
)
from runner.cli.result_table import console

SCHEMA = "compilewatch.compare/1"
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print Markdown for a pull request.")]
MachineOption = Annotated[
    str | None,
    typer.Option("--machine", metavar="ID", help="The machine; default: the one with most matched cases."),
]


def compare(
    base: Annotated[
        str, typer.Argument(help="torch=2.12.0, driver=570.86, a label, a build or run id, previous.")
    ],
    head: Annotated[str, typer.Argument(help="The other side, such as latest.")],
    workload: WorkloadsOption = None,
    strategy: StrategiesOption = None,
    machine: MachineOption = None,
    json_: JsonOption = False,
    markdown_: MarkdownOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """What got slower, what got faster, who moved.

    Example: compilewatch compare torch=2.12.1 torch=2.13.0

    Exits 1 when a case regressed, 2 when nothing could be told.
    """
    filters = Filters(workloads=tuple(workload or ()), strategies=tuple(strategy or ()))
    with database_of(settings_of(config, db), migrate=False) as database:
        comparison = _compared(
            database, resolve_side(base, database), resolve_side(head, database), filters, machine
        )
    _print(comparison, as_json=json_, as_markdown=markdown_)
    return exit_code(comparison)


def gate(
    since: Annotated[
        str | None, typer.Option("--since", metavar="RUN", help="Judge against this run.")
    ] = None,
    against: Annotated[
        str | None, typer.Option("--against", metavar="BUILD", help="Judge against this build.")
    ] = None,
    machine: MachineOption = None,
    json_: JsonOption = False,
    markdown_: MarkdownOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Judge the newest run, for CI: one line per regression.

    Example: compilewatch gate --against torch=2.12.1

    Without an option the run before it is the base. Exits 1 on a regression, 2 when nothing could be told.
    """
    with database_of(settings_of(config, db), migrate=False) as database:
        newest, before = newest_runs(database)
        named = since or against
        base = resolve_side(named, database) if named else before
        if base is None:
            raise NotFoundError(
                "There is no run before the newest one.", "Run the suite again, or name --against."
            )
        comparison = _compared(database, base, newest, Filters(), machine)
    if json_ or markdown_:
        _print(comparison, as_json=json_, as_markdown=markdown_)
        return exit_code(comparison)
    for row in comparison.rows:
        if row.verdict is Verdict.REGRESSED:
            typer.echo(regression_line(row))
    for line in summary_lines(comparison):
        print(line, file=sys.stderr)
    return exit_code(comparison)


def newest_runs(database: Database) -> tuple[Selection, Selection | None]:
    """The newest run with trials, and the one before it of the same suite."""
    runs = facets.runs(database)
    runs = runs[runs["trials"] > 0].sort_values("first_seen_at")
    if runs.empty:
        raise NotFoundError("There is no run in this database.", "Measure with `compilewatch run`.")
    newest = runs.iloc[-1]
    suite = "" if pd.isna(newest["suite"]) else newest["suite"]
    same_suite = runs["suite"].fillna("") == suite
    earlier = runs[same_suite & (runs["run_id"] != newest["run_id"])]
    before = None if earlier.empty else run_side(str(earlier["run_id"].iloc[-1]))
    return run_side(str(newest["run_id"])), before


def run_side(run_id: str) -> Selection:
    return Selection(name=run_id, run_ids=(run_id,))


def exit_code(comparison: Comparison) -> int:
    """1 where something regressed, 2 where no row could be told apart from noise, else 0."""
    if comparison.verdict is Verdict.REGRESSED:
        return 1
    told = {Verdict.IMPROVED, Verdict.UNCHANGED}
    return 0 if any(row.verdict in told for row in comparison.rows) else 2


def _compared(
    database: Database, base: Selection, head: Selection, filters: Filters, machine: str | None
) -> Comparison:
    trials = trials_frame(database, filters)
    return compare_builds(trials, base, head, history=trials, machine_id=machine)


def _print(comparison: Comparison, *, as_json: bool, as_markdown: bool) -> None:
    if as_json:
        print_document({"schema": SCHEMA, **comparison.to_json()})
    elif as_markdown:
        sys.stdout.write(markdown(comparison))
    else:
        out = console()
        for line in summary_lines(comparison):
            out.print(line, markup=False, highlight=False)
        told = [row for row in comparison.rows if row.verdict is not Verdict.UNCHANGED]
        if told:
            out.print(comparison_table(told))
        typer.echo(f"{count(len(comparison.rows) - len(told))} rows unchanged; --json has them all.")
