"""What `compare`, `gate` and `run` share: which trials meet which, judged by the configured policy; and the
verdict of a fresh run against the history it continues.
"""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import typer

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError, one_line, printable
from compilewatch.db.judge.compare.confirmation import Confirmation
from compilewatch.db.judge.compare.recorded_regressions import (
    EventKind,
    EventSubject,
    event_subject,
    events_of_rows,
    side_keys,
)
from compilewatch.db.judge.compare.sides import CODE, Selection, VerdictError
from compilewatch.db.judge.compare.whole import sentences
from compilewatch.db.judge.decide import TIMED, counts_as_regression, is_set_aside, overall_verdict
from compilewatch.db.judge.decide_again import is_same_step, is_within_accepted, once_accepted
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import Comparison, GeomeanChange, Row
from compilewatch.db.judge.targets import TargetCheck, check_targets
from compilewatch.db.judge.verdict_marks import WORST_FIRST
from compilewatch.db.queries.case_parts import BuildCase, notes_of_cases
from compilewatch.db.queries.causes import (
    Case,
    Explanation,
    explanation_documents,
    explanation_lines,
    explanations,
)
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import count_trials, trials_frame
from compilewatch.db.records.people import ACCEPTED
from compilewatch.db.records.strategies import names_code
from compilewatch.db.records.trial import SourceKind, Status
from compilewatch.db.records.vocabulary import Design, Metric, Verdict
from compilewatch.db.service.regressions import RegressionState, standing_regressions
from compilewatch.db.units import count, plural, words
from compilewatch.db.verdicts import gateway
from compilewatch.runner.cli.front import EXIT_CANNOT
from compilewatch.runner.cli.options import only
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.output.comparison_text import (
    BESIDE,
    comparison_table,
    markdown,
    recorded_lines,
    summary_lines,
    tally,
    target_lines,
    verdict_line,
    worse_beside_lines,
)
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.tables import console, print_lines
from compilewatch.runner.regressions.judged_runs import Head, NoRunBeforeError, sides_by_code
from compilewatch.runner.regressions.log import Logged, log_builds, log_run

if TYPE_CHECKING:
    from compilewatch.runner.regressions.log import Logged


SCHEMA = "compilewatch.compare/1"


States = dict[EventSubject, RegressionState]
_EXPLAINED_CASES = 5
_NOTED_CASES = 5
IMPORT_AGAIN = "Import another result of the same build, then run the gate again."
RUN_AGAIN = "Type the same `compilewatch run` again to confirm."


@dataclass(frozen=True)
class ComparisonReport:
    """A comparison, the head's targets, what is recorded about the comparison's cases, by event,
    whether both sides are imported, which nothing here can measure again, why cases changed, what a
    confirmation `decided`, the rows of what is tested `beside` the verdict, and what is `noted` of the head's
    cases. `found_on` is the pull request or branch that is judged, `pull_request_commit` its commit where
    another one was measured. `is_interleaved`: what could be was judged on trials that were measured by
    turns; `is_until_decided`: until they decided it.
    """

    comparison: Comparison
    targets: tuple[TargetCheck, ...]
    states: States
    imported: bool
    explanations: Mapping[Case, Explanation]
    decided: tuple[str, ...] = ()
    beside: tuple[Row, ...] = ()
    noted: tuple[str, ...] = ()
    found_on: str | None = None
    pull_request_commit: str | None = None
    is_interleaved: bool = False
    is_until_decided: bool = False

    @property
    def sentences(self) -> list[str]:
        """The comparison in sentences, with what became of its regressions so far."""
        first, *others = summary_lines(self.comparison)
        recorded = recorded_lines(self.states.values())
        why = explanation_lines(self.comparison, self.explanations, most=_EXPLAINED_CASES, rest_in="--json")
        beside = worse_beside_lines(self.comparison, self.beside)
        return [first, *beside, *recorded, *self.decided, *why, *others, *self.noted]

    @property
    def standing_verdict(self) -> Verdict:
        """That of the whole where what somebody accepted is decided and no regression."""
        rows = [once_accepted(row) if is_accepted(row, self.states) else row for row in self.comparison.rows]
        return overall_verdict(rows, self.comparison.policy)

    @property
    def title(self) -> str:
        """Both sides and what became of the cases, in one line, the accepted ones apart."""
        slower = [row for row in self.comparison.rows if counts_as_regression(row)]
        open_cases = {row.case.ids for row in slower if not is_accepted(row, self.states)}
        accepted = {row.case.ids for row in slower} - open_cases
        line = verdict_line(self.comparison, self.standing_verdict, accepted)
        return f"{line}, {plural(len(missed), 'target')} missed" if (missed := self.missed_targets) else line

    @property
    def missed_targets(self) -> tuple[TargetCheck, ...]:
        """Those that are known not to be met."""
        return tuple(check for check in self.targets if check.met is False)


@dataclass(frozen=True)
class Decided:
    """What a confirmation made of each suspicion; empty where there was none. `lines` say it, and what was
    left out; `rows` are the verdicts on its fresh trials that stand, `geomean` their means where every case
    was measured again.
    """

    confirmations: tuple[Confirmation, ...] = ()
    lines: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    geomean: GeomeanChange | None = None
    interrupted: bool = False


def judge(
    database: Database,
    base: Selection,
    head: Selection,
    settings: Settings,
    *,
    policy: Policy | None = None,
    filters: Filters | None = None,
    machine: str | None = None,
    remarks: tuple[str, ...] = (),
    found_on: str | None = None,
    pull_request_commit: str | None = None,
) -> ComparisonReport:
    """Judge `head` against `base` over the trials that `filters` leave, and check the head's targets.
    `remarks`, `found_on` and `pull_request_commit` are of the choice of the sides.

    Raises VerdictError where a side has no trial or a trial is on both sides.
    """
    filters = filters or Filters()
    comparison = gateway.compare(
        *(database, base, head, filters),
        machine_id=machine,
        policy=policy or settings.policy,
        remarks=remarks,
        asked=BESIDE,
    )
    beside = comparison.asked
    # Tallies and sentences are those of every door.
    comparison = comparison.model_copy(update={"asked": ()})
    comparison = comparison.model_copy(update={"sentences": sentences(comparison)})
    here = replace(filters, machines=only(comparison.machine_id))
    of_sides = [replace(here, builds=side.build_ids, runs=side.run_ids) for side in (base, head)]
    targets: tuple[TargetCheck, ...] = ()
    if settings.target and comparison.machine_id:
        targets = check_targets(trials_frame(database, of_sides[1]), settings.target)
    notes = notes_of_cases(database, of_sides[1])
    by_turns = (row for row in comparison.rows if row.design is Design.INTERLEAVED)
    until_decided = any(row.until_decided for row in by_turns)
    imported = not any(
        count_trials(database, replace(each, sources=(SourceKind.MEASURED,))) for each in of_sides
    )
    return ComparisonReport(
        comparison,
        targets,
        recorded_states(database, comparison, found_on),
        imported,
        explanations(database, comparison),
        beside=beside,
        noted=tuple(_noted(comparison, failed_cases(database, of_sides[1]), notes)),
        found_on=found_on,
        pull_request_commit=pull_request_commit,
        is_interleaved=until_decided,
        is_until_decided=until_decided,
    )


def failed_cases(database: Database, filters: Filters) -> dict[tuple[str, str], str]:
    """How each case failed last, by the ids of workload and strategy."""
    failed = trials_frame(database, replace(filters, statuses=(Status.FAILED,)))
    columns = failed[["workload_id", "strategy_id", "failure_kind", "failure_message"]]
    return {
        (workload, strategy): f"{words(kind)}: {_first_line(message)}"
        for workload, strategy, kind, message in columns.itertuples(index=False)
    }


def _first_line(text: str) -> str:
    return one_line(text.partition("\n")[0])


def _noted(
    comparison: Comparison, failed: Mapping[tuple[str, str], str], notes: Mapping[BuildCase, list[str]]
) -> Iterator[str]:
    """How the head's cases failed, else the most important note of each, a few of them."""
    cases = {row.case.ids: f"{row.case.workload} / {row.case.strategy}" for row in comparison.rows}
    known = {**failed} | {case[1:]: f"{texts[0]}." for case, texts in notes.items() if case[1:] not in failed}
    lines = [f"{cases[ids]}: {text}" for ids, text in known.items() if ids in cases]
    yield from lines[:_NOTED_CASES]
    if len(lines) > _NOTED_CASES:
        more = plural(len(lines) - _NOTED_CASES, "more case")
        yield f"{more} with notes; `compilewatch show` has all of a trial."


def recorded_states(database: Database, comparison: Comparison, found_on: str | None) -> States:
    """The regressions that are recorded of what this comparison shows, by event: of these sides, else of the
    same step seen from another base, else what was accepted on the pull request or branch `found_on`.
    """
    base, head = side_keys(comparison)
    everything = standing_regressions(database, machine_id=comparison.machine_id)
    standing = [state for state in everything if state.regression.head_key == head]
    events = events_of_rows(comparison.rows)
    states: States = {
        state.regression.subject: state
        for state in everything
        if found_on is not None and state.regression.found_on == found_on and state.state in ACCEPTED
        if is_within_accepted(events.get(state.regression.subject, ()), state.regression.rows)
    }
    for state in sorted(standing, key=lambda each: each.regression.base_key == base):
        known = state.regression
        rows = events.get(known.subject)
        if known.base_key == base or (rows and is_same_step(rows[0], known.row)):
            states[known.subject] = state
    return states


def state_of(row: Row, states: States) -> RegressionState | None:
    """What is recorded of the event that `row` shows."""
    state = states.get(event_subject(row))
    if state is None and row.metric is Metric.BREAK_EVEN:
        state = states.get((*row.case.ids, EventKind.COMPILE))
    return state


def is_accepted(row: Row, states: States) -> bool:
    """Whether somebody accepted the event that `row` shows."""
    recorded = state_of(row, states)
    return recorded is not None and recorded.state in ACCEPTED


def exit_code(verdict: Verdict) -> int:
    """Of a comparison as a whole: 1 regressed, 2 where it cannot tell or nothing can be compared, else 0."""
    if verdict is Verdict.REGRESSED:
        return 1
    return 0 if verdict in (Verdict.IMPROVED, Verdict.UNCHANGED) else EXIT_CANNOT


def print_undecided(verdict: Verdict, report: ComparisonReport) -> None:
    """On standard error why a comparison cannot tell, and what would help; nothing where it can."""
    if exit_code(verdict) != EXIT_CANNOT:
        return
    comparison = report.comparison
    if not comparison.rows:
        sentence = f"Nothing can be compared: {comparison.left_out[0].reason}." if comparison.left_out else ""
        if comparison.matched:
            cases = plural(comparison.matched, "case")
            print(f"compilewatch: {cases} on both sides, without a figure to compare.", file=sys.stderr)
            print("  Import again, naming the metric that is the latency: --latency METRIC.", file=sys.stderr)
            return
        print(f"compilewatch: {sentence or 'No case is on both sides.'}", file=sys.stderr)
        how = "Import results of" if report.imported else "Measure"
        ends = "" if report.imported else " with `compilewatch run`"
        print(f"  {how} the same cases on both sides{ends}.", file=sys.stderr)
        return
    undecided = [row for row in comparison.rows if row.verdict is Verdict.INCONCLUSIVE]
    print(f"compilewatch: Cannot tell: {_what_is_open(comparison.rows, undecided)}.", file=sys.stderr)
    if all(row.never_passes for row in comparison.rows):
        print("  Mend what fails, then measure again: `compilewatch run`.", file=sys.stderr)
        return
    if report.is_interleaved:
        more = "More fresh trials decide more: set fresh_trials in [policy.confirm]."
        if report.is_until_decided:
            more = "More time decides more: `compilewatch run --until-decided --minutes 60`."
        print(f"  {more}", file=sys.stderr)
        return
    advice = comparison.advice
    for sentence in advice.sentences if advice else ():
        print(f"  {sentence}", file=sys.stderr)
    if CODE in comparison.changed_components:
        print("  Measure both commits interleaved: `compilewatch gate --confirm run`.", file=sys.stderr)
        return
    how = "Import more results, or measure both builds" if report.imported else "Measure"
    print(f"  {how} interleaved: `compilewatch run --build A --build B`.", file=sys.stderr)


def _what_is_open(rows: Sequence[Row], undecided: Sequence[Row]) -> str:
    if any(is_set_aside(row) for row in undecided):
        return "the machine explains the change"
    if all(row.never_passes for row in rows):
        return "every case that was measured on both sides fails"
    timed, open_timed = (sum(row.metric in TIMED for row in some) for some in (rows, undecided))
    return (
        f"{count(len(undecided))} of {plural(len(rows), 'row')} undecided, "
        f"{count(open_timed)} of {count(timed)} of latency and speedup"
    )


def print_comparison(
    report: ComparisonReport, *, as_json: bool, as_markdown: bool, more: dict[str, object] | None = None
) -> None:
    """The comparison as a document, as Markdown or as a table; `more` are further keys of the document."""
    comparison = report.comparison
    if as_json:
        targets = [check.model_dump(mode="json") for check in report.targets]
        states = [state.state for state in report.states.values()]
        documents = explanation_documents(comparison, report.explanations)
        document = {"targets": targets, "recorded": tally(states), "causes": documents, **(more or {})}
        asked = comparison.model_copy(update={"asked": report.beside}).to_json()["asked"]
        print_document({"schema": SCHEMA, **comparison.to_json(), "asked": asked, **document})
    elif as_markdown:
        sys.stdout.write(printable(markdown(comparison, report.targets, report.sentences, report.title)))
    else:
        print_lines([*report.sentences, *target_lines(report.targets)])
        changed = [row for row in comparison.rows if row.verdict is not Verdict.UNCHANGED]
        if changed or any(case.fields for case in comparison.left_out):
            console().print(comparison_table(changed, comparison.policy, comparison.left_out))
        typer.echo(f"{plural(len(comparison.rows) - len(changed), 'row')} unchanged; --json has them all.")


def print_logged(logged: Logged, *, imported: bool = False) -> None:
    """On standard error what was remembered of a run, and what to do next, with `imported` results too."""
    recorded, messages = logged.recorded, logged.messages
    waiting = [each for each in recorded.new if each not in recorded.confirmed]
    for each in recorded.revised:
        line = f"Revised: {each.row.workload} / {each.row.strategy}: {each.row.reason}"
        print(printable(line), file=sys.stderr)
    if recorded.confirmed:
        print(f"Confirmed: {count(len(recorded.confirmed))}.", file=sys.stderr)
    if waiting:
        cases = sorted({each.row.workload for each in waiting})
        named = [f" -w {shlex.quote(name)}" for name in cases[:5] if not names_code(name)]
        # Bare, `run` measures the whole suite: what may not be named is not to be read into it.
        again = f"Measure again to confirm: compilewatch run{''.join(named)}" if named else RUN_AGAIN
        how = IMPORT_AGAIN if imported else again
        line = f"Recorded, not confirmed yet: {count(len(waiting))}. {how}"
        print(printable(line), file=sys.stderr)
    if messages.sent:
        print(f"Messages sent: {count(messages.sent)}.", file=sys.stderr)
    for problem in messages.problems:
        print(printable(f"compilewatch: a message was not sent: {problem}"), file=sys.stderr)


_LOG = logging.getLogger("compilewatch.regressions")

Verdicts = dict[tuple[str, str], str]


def judge_and_log(
    database: Database,
    run_ids: Sequence[str],
    workloads: tuple[str, ...],
    settings: Settings,
    *,
    request_confirmations: bool = False,
    fresh: bool = False,
) -> tuple[ComparisonReport | None, Logged]:
    """Judge what was just measured, a run against that of an ancestor, or without code of one's own against
    the one before, and builds that took turns against each other, and record what regressed; None beside it
    where there is no one run to show. Where no base is known nothing is compared, and a warning says why.

    With `request_confirmations` the service is asked to measure new suspicions again; what `fresh` trials by
    turns show is confirmed by them.
    """
    report = _judge_run(database, run_ids[0], workloads, settings) if len(run_ids) == 1 else None
    if report is None:
        return None, log_builds(
            *(database, run_ids, settings), request_confirmations=request_confirmations, fresh=fresh
        )
    return report, log_run(
        *(database, report.comparison, settings),
        request_confirmations=request_confirmations,
        fresh=fresh and any(row.design is Design.INTERLEAVED for row in report.comparison.rows),
        found_on=report.found_on,
    )


def _judge_run(
    database: Database, run_id: str, workloads: tuple[str, ...], settings: Settings
) -> ComparisonReport | None:
    """The run against its base, over the cases of `workloads`; None where the two have nothing in common."""
    head = Head(Selection(name=run_id, run_ids=(run_id,)))
    try:
        sides = sides_by_code(database, settings, head)
    except NoRunBeforeError:
        return None
    except NotFoundError as error:
        _LOG.warning("Not compared: %s %s", error.message, error.next_step)
        return None
    try:
        return judge(
            *(database, sides.base, sides.head, settings),
            filters=Filters(workloads=workloads),
            remarks=sides.remarks,
            found_on=sides.change,
            pull_request_commit=sides.pull_request_commit,
        )
    except VerdictError:
        return None


def worst_verdicts(comparison: Comparison) -> Verdicts:
    """By workload and strategy name: the worst verdict over all metrics; none of what fails on both sides."""
    worst: Verdicts = {}
    rows = [row for row in comparison.rows if not row.never_passes]
    for verdict in reversed(WORST_FIRST):
        worst |= {(row.workload, row.strategy): verdict.value for row in rows if row.verdict is verdict}
    return worst
