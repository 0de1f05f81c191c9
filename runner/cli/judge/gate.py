"""`compilewatch gate`: the run of this checkout, judged for CI, and what is remembered of it.

Its steps, in `gate`: the two runs and every verdict between them (`_judge`), regressions recorded and
sent (`_record`), suspicions measured again or queued where that is asked (`_confirmation`), the verdicts on
fresh trials in the place of the first (`_after`), the lines, the exit.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError, DatabaseError, printable
from compilewatch.db.judge.compare.recorded_regressions import events_of_rows, row_subject
from compilewatch.db.judge.compare.sides import CODE, Selection, VerdictError
from compilewatch.db.judge.compare.whole import sentences
from compilewatch.db.judge.decide import counts_as_regression, overall_verdict
from compilewatch.db.judge.results import GeomeanChange, Row
from compilewatch.db.judge.verdict_marks import worst_first
from compilewatch.db.queries.causes import explanations
from compilewatch.db.queries.codes import commits_of_run, interleaved_runs
from compilewatch.db.records.vocabulary import Design
from compilewatch.db.verdicts import gateway
from compilewatch.db.verdicts.sides import resolve_sides
from compilewatch.runner.cli import options
from compilewatch.runner.cli.front import EXIT_INTERRUPTED
from compilewatch.runner.cli.judge.judging import (
    IMPORT_AGAIN,
    ComparisonReport,
    Decided,
    exit_code,
    is_accepted,
    judge,
    print_comparison,
    print_logged,
    print_undecided,
    recorded_states,
    state_of,
)
from compilewatch.runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    MachineOption,
    MarkdownOption,
    database_of,
    machine_named,
    settings_of,
)
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.output.comparison_text import changed_line, regression_line, target_lines
from compilewatch.runner.regressions.judged_runs import Sides, head_run, sides_by_code
from compilewatch.runner.regressions.log import log_run


class Confirm(StrEnum):
    """What becomes of suspicions."""

    NO = "no"
    QUEUE = "queue"
    RUN = "run"


def gate(
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="ID", help="Judge this run.", autocompletion=options.sides),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="COMMIT", help="Judge the newest run of this commit or branch."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="RUN", help="Judge against this run.", autocompletion=options.sides),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="BUILD", help="Judge against this build.", autocompletion=options.sides
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="COMMIT", help="Judge against the run of this commit or branch."),
    ] = None,
    machine: MachineOption = None,
    confirm: Annotated[
        Confirm,
        typer.Option(help="Confirm suspicions: run measures now, queue sends a request to the service."),
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
    """Judge the run that this checkout made on this machine, for CI: one line per regression.

    Example: compilewatch gate --against torch=2.12.1 --confirm run

    The base is the run of the commit that the measured code's branch started from, as git or the CI's
    variables name it, or of its nearest measured ancestor; on the default branch that of the nearest measured
    commit before. Code of nobody's own meets the run before, of the same suite. Options name other runs.
    Imported runs count only where nothing is measured. Every regression is recorded once; a sure one is sent
    to the configured channels, a suspected one after fresh trials confirm it. Exits 1 on a missed target or a
    regression, confirmed or not yet; not on one triaged as expected or false alarm, or refuted by fresh
    trials. Exits 2 when nothing can be decided, or either run is not known.
    """
    settings = settings_of(config, db)
    with database_of(settings, migrate=False, changes=True) as database:
        report = _judge(database, settings, (run, head), _only_one(since, against), base, machine)
        report = _measured_by_turns(database, report, settings)
        _record(database, report, settings)
        decided = _confirmation(database, report, settings, confirm, budget)
        report = _after(database, report, decided)
    report = report if json_ else _as_people_know(report)
    if json_ or markdown_:
        for line in decided.lines:
            print(printable(line), file=sys.stderr)
        print_comparison(report, as_json=json_, as_markdown=markdown_, more=_more(report, decided))
    else:
        _print(report)
    return EXIT_INTERRUPTED if decided.interrupted else _exit_code(report)


def _only_one(since: str | None, against: str | None) -> str | None:
    if since and against:
        raise ConfigError("--since and --against name two bases.", "Give one of them.")
    return since or against


def _judge(
    database: Database,
    settings: Settings,
    judged: tuple[str | None, str | None],
    named: str | None,
    commit: str | None,
    machine: str | None,
) -> ComparisonReport:
    """`judged` are the run and the commit that were named, `named` and `commit` those of the base."""
    if named and commit:
        raise ConfigError("--base and --since or --against name two bases.", "Give one of them.")
    machine = machine_named(database, machine)
    head = head_run(database, settings, run=judged[0], commit=judged[1], machine=machine)
    if named:
        both = resolve_sides(named, head.run, database)
        sides = Sides(both.base, both.head, both.remarks)
    else:
        sides = sides_by_code(database, settings, head, commit)
    return judge(
        *(database, sides.base, sides.head, settings),
        machine=machine,
        remarks=sides.remarks,
        found_on=sides.change,
        pull_request_commit=sides.pull_request_commit,
    )


def _confirmation(
    database: Database, report: ComparisonReport, settings: Settings, how: Confirm, budget: int | None
) -> Decided:
    if how is Confirm.NO:
        return Decided()
    if report.is_until_decided:
        print("compilewatch: Both sides were measured by turns: nothing is measured again.", file=sys.stderr)
        return Decided()
    if not report.imported:
        # Measuring takes a good part of a second to import.
        from compilewatch.runner.cli.judge import confirm

        ask = confirm.measure_again if how is Confirm.RUN else confirm.queue
        return ask(database, report.comparison, settings, budget)
    if _counted(report):
        print("compilewatch: Imported results cannot be measured again.", file=sys.stderr)
        print(f"  {IMPORT_AGAIN}", file=sys.stderr)
    return Decided()


def _after(database: Database, report: ComparisonReport, decided: Decided) -> ComparisonReport:
    """With what is recorded now. Where cases were measured again: with those verdicts in the place of the
    first, what was decided in words, and why cases changed by the new profiles too.
    """
    if not decided.lines:
        return replace(report, states=recorded_states(database, report.comparison, report.found_on))
    report = _with_rows(report, decided.rows, decided.geomean or GeomeanChange())
    return replace(
        report,
        states=recorded_states(database, report.comparison, report.found_on),
        explanations=explanations(database, report.comparison),
        decided=decided.lines,
    )


def _measured_by_turns(database: Database, report: ComparisonReport, settings: Settings) -> ComparisonReport:
    """With the verdicts on trials of the same two commits that were measured by turns, as an earlier
    `--confirm run` did, in the place of those between separate runs.
    """
    comparison = report.comparison
    if report.is_until_decided:
        return report
    runs = [side.run_ids for side in (comparison.base, comparison.head)]
    if CODE not in comparison.changed_components or comparison.machine_id is None or max(map(len, runs)) > 1:
        return report
    with database.read() as connection:
        commits = [commits_of_run(connection, run) for (run,) in runs]
        if any(not each or each[0][1] for each in commits):
            return report
        base, head = (each[0][0] for each in commits)
        again = interleaved_runs(connection, base, head, comparison.machine_id, but=runs[1])
    if again is None:
        return report
    first, second = (
        Selection(name=side.name, run_ids=(run,))
        for side, run in zip((comparison.base, comparison.head), again, strict=True)
    )
    try:
        fresh = gateway.compare(
            database, first, second, machine_id=comparison.machine_id, policy=settings.policy
        )
    except VerdictError:
        return report
    rows = [row for row in fresh.rows if row.design is Design.INTERLEAVED]
    geomean = fresh.geomean if fresh.matched == comparison.matched else GeomeanChange()
    return _with_rows(report, rows, geomean) if rows else report


def _with_rows(report: ComparisonReport, fresh: Sequence[Row], geomean: GeomeanChange) -> ComparisonReport:
    """With verdicts on interleaved trials in the place of the same ones between separate runs."""
    if not fresh:
        return replace(report, is_interleaved=True)
    comparison = report.comparison
    found = {row_subject(row): row for row in fresh}
    known = {row_subject(row) for row in comparison.rows}
    rows = tuple(found.get(row_subject(row), row) for row in comparison.rows)
    rows += tuple(row for subject, row in found.items() if subject not in known)
    verdict = overall_verdict(rows, comparison.policy)
    comparison = comparison.model_copy(update={"rows": rows, "verdict": verdict, "geomean": geomean})
    lines = sentences(comparison, advise=False)
    return replace(report, comparison=comparison.model_copy(update={"sentences": lines}), is_interleaved=True)


def _as_people_know(report: ComparisonReport) -> ComparisonReport:
    """With the pull request's commit in the place of its merge, which was measured and nobody has seen."""
    comparison, known = report.comparison, report.pull_request_commit
    if known is None:
        return report
    components = comparison.head.components | {CODE: known}
    head = comparison.head.model_copy(update={"name": f"commit={known}", "components": components})
    comparison = comparison.model_copy(update={"head": head})
    lines = sentences(comparison, advise=not report.is_interleaved)
    return replace(report, comparison=comparison.model_copy(update={"sentences": lines}))


def _record(database: Database, report: ComparisonReport, settings: Settings) -> None:
    try:
        print_logged(
            log_run(database, report.comparison, settings, found_on=report.found_on), imported=report.imported
        )
    except DatabaseError as error:
        # A gate with a reading account still judges.
        print(f"compilewatch: regressions were not recorded: {error.message}", file=sys.stderr)


def _counted(report: ComparisonReport) -> list[Row]:
    return [row for row in report.comparison.rows if counts_as_regression(row)]


def _print(report: ComparisonReport) -> None:
    events = events_of_rows(_counted(report))
    also = {id(rows[0]): rows[1:] for rows in events.values()}
    for row in worst_first(rows[0] for rows in events.values()):
        known = state_of(row, report.states)
        recorded = f" [{known.regression.regression_id}, {known.state.value}]" if known else ""
        accepted = is_accepted(row, report.states)
        prefix = "Accepted: " if accepted else ""
        shown = f"{regression_line(row, also[id(row)])}{changed_line(report.comparison)}"
        line = printable(f"{prefix}{shown}{recorded}")
        print(line, file=sys.stderr if accepted else sys.stdout)
    for line in target_lines(report.missed_targets):
        print(printable(line))
    unchecked = [check for check in report.targets if check.met is None]
    for line in (*target_lines(unchecked), *report.sentences):
        print(printable(line), file=sys.stderr)
    print(printable(f"Verdict: {report.title}."))


def _more(report: ComparisonReport, decided: Decided) -> dict[str, object]:
    """What the document has beside the comparison: recorded regressions, and what fresh trials found."""
    shown = (state_of(row, report.states) for row in _counted(report))
    known = {each.regression.regression_id: each for each in shown if each is not None}.values()
    regressions = [
        {
            "regression_id": each.regression.regression_id,
            "workload": each.regression.row.workload,
            "strategy": each.regression.row.strategy,
            "metric": each.regression.row.metric.value,
            "state": each.state.value,
            "recorded_at": each.regression.recorded_at,
        }
        for each in known
    ]
    confirmations = [each.model_dump(mode="json") for each in decided.confirmations]
    return {"regressions": regressions, "confirmations": confirmations}


def _exit_code(report: ComparisonReport) -> int:
    """What somebody accepted is decided and no regression; a missed target counts like one."""
    if report.missed_targets:
        return 1
    verdict = report.standing_verdict
    print_undecided(verdict, report)
    return exit_code(verdict)
