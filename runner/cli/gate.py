"""`compilewatch gate`: the newest run, judged for CI, and what is remembered of it."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated, Any

import typer

from db.errors import ConfigError, DatabaseError, NotFoundError, printable
from db.queries.filters import Filters
from db.queries.regressions import RegressionState
from db.queries.sides import resolve_side
from db.queries.stored_names import require_stored
from db.regressions import ACCEPTED, row_subject
from db.session import Database
from db.verdicts.results import Row
from db.verdicts.vocabulary import Verdict
from db.verdicts.whole import counts_as_regression, overall_verdict, sentences
from runner.cli.comparison_text import regression_line
from runner.cli.filters import only
from runner.cli.front import EXIT_INTERRUPTED
from runner.cli.gate_confirm import Confirm, Decided, confirm_suspicions
from runner.cli.judging import (
    IMPORT_AGAIN,
    Judged,
    States,
    exit_code,
    judge,
    newest_runs,
    print_judged,
    recorded_states,
    say_logged,
    say_undecided,
)
from runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    MachineOption,
    MarkdownOption,
    database_of,
    settings_of,
)
from runner.cli.target_text import target_lines
from runner.config import Settings
from runner.regression_log import log_run


def gate(
    since: Annotated[
        str | None, typer.Option("--since", metavar="RUN", help="Judge against this run.")
    ] = None,
    against: Annotated[
        str | None, typer.Option("--against", metavar="BUILD", help="Judge against this build.")
    ] = None,
    machine: MachineOption = None,
    confirm: Annotated[
        Confirm, typer.Option(help="Measure suspicions again: run does it now, queue asks the service.")
    ] = Confirm.NO,
    budget: Annotated[
        int | None,
        typer.Option(min=1, help="Trials of --confirm at most, both builds together; unset: the policy's."),
    ] = None,
    json_: JsonOption = False,
    markdown_: MarkdownOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Judge the newest measured run, for CI: one line per regression.

    Example: compilewatch gate --against torch=2.12.1 --confirm run

    Without an option the measured run before it is the base; a run of no suite that has none before it gives
    way to the newest of a suite. Imported runs are judged where nothing was measured, or by name with
    `compare`. Regressions are recorded once, confirmed by fresh trials that show them again, and then told
    on the configured channels. Exits 1 on a regression that nobody triaged as expected or false alarm and
    no second look took back, and on a missed target; 2 when nothing could be told.
    """
    settings = settings_of(config, db)
    with database_of(settings, migrate=False) as database:
        judged = _judge_newest(database, settings, since, against, machine)
        _record(database, judged, settings)
        decided = _second_look(database, judged, settings, confirm, budget)
        judged = replace(_after(judged, decided), states=recorded_states(database, judged.comparison))
    if json_ or markdown_:
        print_judged(judged, as_json=json_, as_markdown=markdown_, more=_more(judged, decided))
    else:
        _print(judged)
    return EXIT_INTERRUPTED if decided.interrupted else _exit_code(judged)


def _judge_newest(
    database: Database, settings: Settings, since: str | None, against: str | None, machine: str | None
) -> Judged:
    if since and against:
        raise ConfigError("--since and --against name two bases.", "Give one of them.")
    named = since or against
    newest, before, imported = newest_runs(database, only_newest=named is not None)
    base = resolve_side(named, database) if named else before
    if base is None:
        again = "Import an earlier result too" if imported else "Run the suite again"
        raise NotFoundError("There is no run before the newest one.", f"{again}, or name --against.")
    require_stored(database, Filters(machines=only(machine)))
    return judge(database, base, newest, settings, machine=machine)


def _second_look(
    database: Database, judged: Judged, settings: Settings, how: Confirm, budget: int | None
) -> Decided:
    if not judged.imported:
        return confirm_suspicions(database, judged.comparison, settings, how, budget)
    if how is not Confirm.NO and _counted(judged):
        print("compilewatch: Imported results cannot be measured again.", file=sys.stderr)
        print(f"  {IMPORT_AGAIN}", file=sys.stderr)
    return Decided()


def _after(judged: Judged, decided: Decided) -> Judged:
    """With the verdicts of a second look in the place of those that were suspected."""
    fresh = {row_subject(each.row): each.row for each in decided.confirmations if each.row is not None}
    rows = tuple(fresh.get(row_subject(row), row) for row in judged.comparison.rows)
    if not fresh:
        return judged
    comparison = judged.comparison.model_copy(
        update={"rows": rows, "verdict": overall_verdict(rows, judged.comparison.policy)}
    )
    return replace(judged, comparison=comparison.model_copy(update={"sentences": sentences(comparison)}))


def _record(database: Database, judged: Judged, settings: Settings) -> None:
    try:
        say_logged(log_run(database, judged.comparison, settings), imported=judged.imported)
    except DatabaseError as error:
        # A gate with a reading account still judges.
        print(f"compilewatch: regressions were not recorded: {error.message}", file=sys.stderr)


def _is_accepted(row: Row, states: States) -> bool:
    found = states.get(row_subject(row))
    return found is not None and found.state in ACCEPTED


def _counted(judged: Judged) -> list[Row]:
    return [row for row in judged.comparison.rows if counts_as_regression(row)]


def _print(judged: Judged) -> None:
    for row in _counted(judged):
        found = judged.states.get(row_subject(row))
        recorded = f" [{found.regression.regression_id}, {found.state.value}]" if found else ""
        accepted = _is_accepted(row, judged.states)
        prefix = "Accepted: " if accepted else ""
        line = printable(f"{prefix}{regression_line(row)}{recorded}")
        print(line, file=sys.stderr if accepted else sys.stdout)
    for line in target_lines(judged.missed_targets):
        print(printable(line))
    unchecked = [check for check in judged.targets if check.met is None]
    for line in (*target_lines(unchecked), *judged.said):
        print(printable(line), file=sys.stderr)


def _more(judged: Judged, decided: Decided) -> dict[str, object]:
    """What the document has beside the comparison: recorded regressions, and what a second look found."""
    known = [judged.states[row_subject(row)] for row in _counted(judged) if row_subject(row) in judged.states]
    return {
        "regressions": [_state_document(found) for found in known],
        "confirmations": [each.model_dump(mode="json") for each in decided.confirmations],
    }


def _state_document(found: RegressionState) -> dict[str, Any]:
    regression = found.regression
    return {
        "regression_id": regression.regression_id,
        "workload": regression.row.workload,
        "strategy": regression.row.strategy,
        "metric": regression.row.metric.value,
        "state": found.state.value,
        "recorded_at": regression.recorded_at,
    }


def _exit_code(judged: Judged) -> int:
    """What somebody accepted is decided and no regression; a missed target counts like one."""
    if judged.missed_targets:
        return 1
    rows = [
        row.model_copy(update={"verdict": Verdict.UNCHANGED}) if _is_accepted(row, judged.states) else row
        for row in judged.comparison.rows
    ]
    verdict = overall_verdict(rows, judged.comparison.policy)
    say_undecided(verdict, judged)
    return exit_code(verdict)
