"""`compilewatch gate`: the newest run, judged for CI, and what is remembered of it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from db.engine.session import Database
from db.errors import ConfigError, DatabaseError, NotFoundError, printable
from db.judge import gateway
from db.judge.compare.confirmation import Confirmation, decide
from db.judge.compare.sides import Selection, VerdictError
from db.judge.compare.whole import counts_as_regression, overall_verdict, sentences
from db.judge.policy import Policy
from db.judge.results import Comparison, Row
from db.judge.vocabulary import Verdict
from db.queries.filters import Filters
from db.queries.regressions import RegressionState
from db.queries.sides import require_stored, resolve_side
from db.records.regressions import ACCEPTED, row_subject
from db.wording.metrics import METRICS
from db.wording.units import plural
from runner.cli.front import EXIT_INTERRUPTED
from runner.cli.judging import (
    IMPORT_AGAIN,
    ComparisonReport,
    States,
    exit_code,
    judge,
    newest_runs,
    print_comparison,
    print_logged,
    print_undecided,
    recorded_states,
)
from runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    MachineOption,
    MarkdownOption,
    database_of,
    only,
    settings_of,
)
from runner.cli.output.comparison_text import regression_line, target_lines
from runner.cli.output.progress import measure
from runner.config.settings import Settings
from runner.device.host import require_space
from runner.plan.durations import Durations
from runner.plan.host_stacks import HostStacks, MissingBuildError
from runner.plan.plan import Plan
from runner.plan.requests import plan_request
from runner.regressions.confirmation import PlannedConfirmation, confirmation_plan, request_confirmation
from runner.regressions.log import log_builds, log_run

# `compilewatch gate --confirm`: what looks slower is measured again, now or by the service.


class Confirm(StrEnum):
    """What becomes of suspicions."""

    NO = "no"
    QUEUE = "queue"
    RUN = "run"


@dataclass(frozen=True)
class Decided:
    """What a second look made of each suspicion; empty where none was taken."""

    confirmations: tuple[Confirmation, ...] = ()
    interrupted: bool = False


def confirm_suspicions(
    database: Database, comparison: Comparison, settings: Settings, how: Confirm, budget: int | None
) -> Decided:
    """Measure what is suspected again, or queue that. Says on standard error what is done, or why nothing."""
    policy = settings.policy if budget is None else _with_budget(settings.policy, budget)
    if how is Confirm.NO:
        return Decided()
    if how is Confirm.QUEUE:
        # The gate may run elsewhere: whether the builds are there, the measuring host finds out.
        request = request_confirmation(database, comparison, policy, None, at=datetime.now(UTC))
        if request is not None:
            cases = plural(len(request.spec.cases), "case")
            print(f"Confirmation of {cases} queued as {request.request_id}.", file=sys.stderr)
        return Decided()
    try:
        planned = confirmation_plan(database, comparison, policy, HostStacks.read(settings))
    except MissingBuildError as error:
        print(f"compilewatch: {error.message}\n  {error.next_step}", file=sys.stderr)
        return Decided()
    return Decided() if planned is None else _measure(database, comparison, settings, planned)


def _with_budget(policy: Policy, budget: int) -> Policy:
    confirm = policy.confirm.model_copy(update={"budget_trials": budget})
    return policy.model_copy(update={"confirm": confirm})


def _measure(
    database: Database, first: Comparison, settings: Settings, planned: PlannedConfirmation
) -> Decided:
    require_space(settings.data_dir)
    plan = plan_request(settings, planned.spec)
    print(
        f"Measuring {plural(len(planned.plan.suspicions), 'suspected case')} again in "
        f"{plural(len(plan.trials), 'trial')}, both builds interleaved.",
        file=sys.stderr,
    )
    if planned.plan.over_budget:
        waiting = plural(len(planned.plan.over_budget), "suspected case")
        print(f"The budget leaves out {waiting}, the least sure ones.", file=sys.stderr)
    if measure(plan, database, settings, Durations({}))[0].interrupted:
        return Decided(interrupted=True)
    fresh = _judge_fresh(database, first, plan, settings)
    print_logged(log_builds(database, [run.run_id for run in plan.runs], settings, fresh=True))
    decided = decide(planned.plan, fresh)
    for confirmation in decided:
        _print_confirmation(confirmation)
    return Decided(decided)


def _judge_fresh(database: Database, first: Comparison, plan: Plan, settings: Settings) -> Comparison | None:
    """The fresh trials alone, in the order of the first look; None where they cannot meet, which is said."""
    base, head = (
        Selection(name=name, run_ids=(run.run_id,))
        for name, run in zip((first.base.name, first.head.name), plan.runs, strict=True)
    )
    try:
        fresh = gateway.compare(database, base, head, policy=settings.policy)
    except VerdictError as error:
        print(f"compilewatch: {error}", file=sys.stderr)
        return None
    if fresh.machine_id != first.machine_id:
        print("compilewatch: This is another machine than the one with the suspicion.", file=sys.stderr)
        return None
    return fresh


def _print_confirmation(confirmation: Confirmation) -> None:
    case = confirmation.case
    subject = f"{case.workload} / {case.strategy}, {METRICS[confirmation.metric].word}"
    line = f"{confirmation.outcome.value.capitalize()}: {subject}: {confirmation.reason}"
    print(printable(line), file=sys.stderr)


def gate(
    since: Annotated[
        str | None, typer.Option("--since", metavar="RUN", help="Judge against this run.")
    ] = None,
    against: Annotated[
        str | None, typer.Option("--against", metavar="BUILD", help="Judge against this build.")
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
    """Judge the newest measured run, for CI: one line per regression.

    Example: compilewatch gate --against torch=2.12.1 --confirm run

    The base is the run before, of the same suite, unless an option names another. Imported runs count only
    where nothing is measured. Regressions are recorded once, confirmed by fresh trials, and then sent to the
    configured channels. Exits 1 on a missed target or a regression; not on one triaged as expected or
    false alarm, or not confirmed. Exits 2 when nothing can be decided.
    """
    settings = settings_of(config, db)
    with database_of(settings, migrate=False) as database:
        report = _judge_newest(database, settings, since, against, machine)
        _record(database, report, settings)
        decided = _confirmation(database, report, settings, confirm, budget)
        report = replace(_after(report, decided), states=recorded_states(database, report.comparison))
    if json_ or markdown_:
        print_comparison(report, as_json=json_, as_markdown=markdown_, more=_more(report, decided))
    else:
        _print(report)
    return EXIT_INTERRUPTED if decided.interrupted else _exit_code(report)


def _judge_newest(
    database: Database, settings: Settings, since: str | None, against: str | None, machine: str | None
) -> ComparisonReport:
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


def _confirmation(
    database: Database, report: ComparisonReport, settings: Settings, how: Confirm, budget: int | None
) -> Decided:
    if not report.imported:
        return confirm_suspicions(database, report.comparison, settings, how, budget)
    if how is not Confirm.NO and _counted(report):
        print("compilewatch: Imported results cannot be measured again.", file=sys.stderr)
        print(f"  {IMPORT_AGAIN}", file=sys.stderr)
    return Decided()


def _after(report: ComparisonReport, decided: Decided) -> ComparisonReport:
    """With the verdicts of a second look in the place of those that were suspected."""
    fresh = {row_subject(each.row): each.row for each in decided.confirmations if each.row is not None}
    rows = tuple(fresh.get(row_subject(row), row) for row in report.comparison.rows)
    if not fresh:
        return report
    comparison = report.comparison.model_copy(
        update={"rows": rows, "verdict": overall_verdict(rows, report.comparison.policy)}
    )
    return replace(report, comparison=comparison.model_copy(update={"sentences": sentences(comparison)}))


def _record(database: Database, report: ComparisonReport, settings: Settings) -> None:
    try:
        print_logged(log_run(database, report.comparison, settings), imported=report.imported)
    except DatabaseError as error:
        # A gate with a reading account still judges.
        print(f"compilewatch: regressions were not recorded: {error.message}", file=sys.stderr)


def _is_accepted(row: Row, states: States) -> bool:
    recorded = states.get(row_subject(row))
    return recorded is not None and recorded.state in ACCEPTED


def _counted(report: ComparisonReport) -> list[Row]:
    return [row for row in report.comparison.rows if counts_as_regression(row)]


def _print(report: ComparisonReport) -> None:
    for row in _counted(report):
        known = report.states.get(row_subject(row))
        recorded = f" [{known.regression.regression_id}, {known.state.value}]" if known else ""
        accepted = _is_accepted(row, report.states)
        prefix = "Accepted: " if accepted else ""
        line = printable(f"{prefix}{regression_line(row)}{recorded}")
        print(line, file=sys.stderr if accepted else sys.stdout)
    for line in target_lines(report.missed_targets):
        print(printable(line))
    unchecked = [check for check in report.targets if check.met is None]
    for line in (*target_lines(unchecked), *report.sentences):
        print(printable(line), file=sys.stderr)


def _more(report: ComparisonReport, decided: Decided) -> dict[str, object]:
    """What the document has beside the comparison: recorded regressions, and what a second look found."""
    known = [report.states[row_subject(row)] for row in _counted(report) if row_subject(row) in report.states]
    return {
        "regressions": [_state_document(state) for state in known],
        "confirmations": [each.model_dump(mode="json") for each in decided.confirmations],
    }


def _state_document(state: RegressionState) -> dict[str, Any]:
    regression = state.regression
    return {
        "regression_id": regression.regression_id,
        "workload": regression.row.workload,
        "strategy": regression.row.strategy,
        "metric": regression.row.metric.value,
        "state": state.state.value,
        "recorded_at": regression.recorded_at,
    }


def _exit_code(report: ComparisonReport) -> int:
    """What somebody accepted is decided and no regression; a missed target counts like one."""
    if report.missed_targets:
        return 1
    rows = [
        row.model_copy(update={"verdict": Verdict.UNCHANGED}) if _is_accepted(row, report.states) else row
        for row in report.comparison.rows
    ]
    verdict = overall_verdict(rows, report.comparison.policy)
    print_undecided(verdict, report)
    return exit_code(verdict)
