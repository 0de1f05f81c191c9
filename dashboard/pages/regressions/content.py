"""What the page Regressions says: the inbox of what got worse, and the evidence of what is chosen in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.pages.regressions.newest_run import finding_columns, newest_run
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import floors_of
from compilewatch.dashboard.parts.parts import (
    Empty,
    Lines,
    PageContent,
    PageHeadline,
    Pairs,
    Part,
    Table,
    TableColumn,
)
from compilewatch.dashboard.read.data import (
    read_choices,
    read_explanation,
    read_regressions,
    read_steps,
    read_trials,
)
from compilewatch.dashboard.read.versions import cached, drawn_version
from compilewatch.dashboard.verdicts import inbox
from compilewatch.dashboard.verdicts.evidence import evidence_parts, issue_of_case
from compilewatch.dashboard.verdicts.history import history_parts
from compilewatch.dashboard.verdicts.tables import case_title, what_differs
from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.compare.recorded_regressions import tally_lines
from compilewatch.db.queries.selection import Filters
from compilewatch.db.service.regressions import RegressionState

_NOTHING = Empty("No recorded regression fits these filters.", "Widen them above.")
_HIDDEN = "It was chosen by its link; the filters of this report leave it out of its table."
_MOST_CASES_OPEN = 12
_CHANGES = {
    "step": TableColumn("Since", pinned=True, explained="What differs in the first build that has it."),
    "who": TableColumn("Who is hit", width_px=290),
    "metric": TableColumn("Metric"),
    "worst": TableColumn("Worst", numeric=True, unit="change"),
    "median": TableColumn("Median", numeric=True, unit="change"),
    "now": TableColumn("Still there?", explained="What the newest later build of the machine says of it."),
    "owner": TableColumn("Owner"),
    "machines": TableColumn("Machines"),
    "since": TableColumn("Recorded"),
    **parts.hidden(
        {
            "states": TableColumn("States"),
            **parts.texts({"base": "From", "head": "To"}),
            "cases": TableColumn("Cases", kind="number"),
            "cost": TableColumn(
                "Cost",
                unit="ns",
                explained="By how much a step takes longer, times the steps that were timed with it.",
            ),
        }
    ),
}
_COLUMNS = {
    "workload": parts.WORKLOAD,
    "change": finding_columns(None)["change"],
    "state": TableColumn("State"),
    "now": TableColumn("Now", explained="What the newest later build of the machine says of it."),
    **finding_columns(None),
    "to": TableColumn("To"),
    **parts.hidden(
        {
            "also": TableColumn("Shown by too", explained="Other figures of the same case at the same step."),
            "cause": TableColumn(
                "Cause class",
                explained="Which side moved: compiled, eager or the machine. Not which part of the build.",
            ),
            **parts.texts({"from": "From", "machine": "Machine"}),
            "recorded_at": TableColumn("Recorded (UTC)", kind="moment"),
            **parts.texts({"by": "Last said by", "note": "Note", "link": "Link"}),
        }
    ),
}


@cached
def page(link: Link) -> PageContent:
    """The inbox under the filters of `link` and the evidence of the first that is chosen, of the others that
    are chosen one by one in the appendix; where nothing was ever recorded, the newest run.
    """
    recorded = read_regressions()
    if not recorded:
        newest = newest_run(link)
        return replace(newest, parts=(*newest.parts, *parts.how_sure(*_steps(link))))
    shown = inbox.chosen(recorded, link)
    listed = inbox.changes(shown)
    chosen = chosen_of(recorded, link)
    first = _regression(chosen[0], listed=chosen[0] in shown) if chosen else ()
    machines = {each.regression.machine_id for each in shown} - {None}
    floors = {str(machine): floors_of(machine) for machine in machines}
    return PageContent(
        (
            *_inbox(listed, shown),
            *(part for each in listed if each.change.change_id in link.change for part in _of_change(each)),
            *_cases(cases_of(shown, link), floors, link),
            *first,
            *parts.how_sure(*_steps(link)),
        ),
        link,
        builds=_builds(shown, chosen),
        data=lambda: {"regressions": [each.regression.model_dump(mode="json") for each in shown]},
        appendix=lambda: tuple(
            part
            for each in chosen[1:]
            if each.regression.regression_id in link.regression
            for part in _regression(each, listed=each in shown)
        ),
    )


def chosen_of(recorded: Sequence[RegressionState], link: Link) -> list[RegressionState]:
    """The regressions that a link chooses one by one, else those of the changes that it chooses, what moved
    most first.
    """
    if link.regression:
        chosen = [each for each in recorded if each.regression.regression_id in link.regression]
        return sorted(chosen, key=lambda each: link.regression.index(each.regression.regression_id))
    if not link.change:
        return []
    listed = inbox.changes(inbox.chosen(recorded, link))
    return [state for each in listed if each.change.change_id in link.change for state in each.states]


def cases_of(shown: Sequence[RegressionState], link: Link) -> list[RegressionState]:
    """The rows of the table of cases: those of the changes that are chosen, of all where none is."""
    members = {each.regression.regression_id for each in chosen_of(shown, replace(link, regression=()))}
    return [each for each in shown if not link.change or each.regression.regression_id in members]


def _steps(link: Link) -> tuple[Part, ...]:
    """How many steps the history of the machine shows, recorded or not."""
    machine = link.machine or read_choices().newest_machine
    filters = Filters(workloads=link.workload, strategies=link.strategy)
    said = read_steps(machine, filters) if machine else ""
    return parts.notes([said] if said else [])


def inbox_key(link: Link) -> str:
    """The key of the table of cases: a new data version may order its rows anew, and each change has cases of
    its own, so it is another table then.
    """
    return "-".join(("inbox", str(drawn_version()), *link.change))


def changes_key() -> str:
    """The key of the table of changes, which a new data version may order anew."""
    return f"changes-{drawn_version()}"


def _inbox(listed: Sequence[inbox.ListedChange], shown: Sequence[RegressionState]) -> tuple[Part, ...]:
    if not shown:
        return (_NOTHING,)
    of_cases = f"{units.plural(len(shown), 'regression')} in {units.plural(len(listed), 'change')}"
    told = tally_lines(each.regression for each in shown if each.is_open)
    return (
        _headline(listed),
        Lines((f"{of_cases}: {inbox.counted(shown)}.",), key="counted"),
        Table(
            changes_key(),
            "What got worse, a row each change: its step, who is hit, how far, where, since when and whose",
            inbox.changes_table(listed),
            _CHANGES,
        ),
        *([Lines(tuple(told), "What became of all cases there", key="tallies")] if told else []),
    )


def _headline(listed: Sequence[inbox.ListedChange]) -> PageHeadline:
    waiting = [each for each in listed if each.is_open]
    unowned = sum(not each.owners for each in waiting)
    cured = sum(each.is_cured for each in listed)
    owned, closed = len(waiting) - unowned, len(listed) - len(waiting) - cured
    counted = (
        (unowned, "needs an owner", "need an owner"),
        (owned, "has an owner", "have an owner"),
        (cured, "looks fixed", "look fixed"),
        (closed, "is closed", "are closed"),
    )
    said = [
        f"{units.count(number)} {one if number == 1 else more}" for number, one, more in counted if number
    ]
    said[0] = said[0].replace(" ", " change " if said[0].startswith("1 ") else " changes ", 1)
    return PageHeadline(", ".join(said), "bad" if unowned else "good")


def _of_change(each: inbox.ListedChange) -> tuple[Part, ...]:
    """What to do about a change that is chosen."""
    cured = [f"It is {each.now}: close it as fixed."] if each.is_cured else []
    command = inbox.bisect_command(each.change)
    return (
        Lines((f"{each.change.sentence}.", *cured), key="change"),
        *((Lines((command,), "Bisect it", code=True, key="bisect"),) if command else ()),
    )


def _cases(cases: Sequence[RegressionState], floors: inbox.Floors, link: Link) -> tuple[Part, ...]:
    """The table of cases, folded where nothing is chosen and there are many."""
    if not cases:
        return ()
    title = f"{units.plural(len(cases), 'case')}, one by one"
    alt = "Recorded regressions, a row each: state, case, change, cause, builds and what was said last"
    table = Table(inbox_key(link), alt, inbox.inbox_table(cases, floors), _COLUMNS, title=title)
    many = len(cases) > _MOST_CASES_OPEN and not (link.change or link.regression)
    return parts.folded([table]) if many else (table,)


def _builds(shown: Sequence[RegressionState], chosen: Sequence[RegressionState]) -> tuple[str, ...]:
    """Those of the sides that are still stored."""
    of_sides = dict.fromkeys(
        build
        for each in (*chosen, *shown)
        if shown
        for side in (each.regression.head, each.regression.base)
        for build in side.build_ids
    )
    known = read_choices().builds
    return tuple(key for key in of_sides if key in known)


def _regression(each: RegressionState, *, listed: bool) -> tuple[Part, ...]:
    """The evidence of a chosen one; `listed` where the table has it."""
    regression, row = each.regression, each.regression.row
    title = f"{METRICS[row.metric].name} of {row.workload} with {row.strategy}"
    revised = f" Revision {regression.revision} of this verdict." if regression.revision else ""
    about = (
        *(() if listed else (_HIDDEN,)),
        f"{inbox.state_text(each.state)}: {inbox.MEANINGS[each.state]}. Recorded "
        f"{units.moment(regression.recorded_at)} on {regression.machine}.{revised}",
        *((f"It is {each.now}.{' Close it as fixed.' if each.is_cured else ''}",) if each.now else ()),
    )
    differs = what_differs("regression-environment", regression, "the sides")
    sides, machines = (regression.base, regression.head), filter(None, [regression.machine_id])
    filters = Filters(runs=(*regression.base.run_ids, *regression.head.run_ids))
    trials = read_trials(replace(filters, machines=tuple(machines)))
    return (
        Lines(about, f"{case_title(row)}: {row.reason}", key="regression-about"),
        *(differs or parts.notes(["No part of the build changed between the sides."])),
        *parts.notes(read_explanation(regression.machine_id, sides, (row,))),
        *evidence_parts(
            trials, sides, row.case, [row], row.metric, title=title, key="regression-case", confidence=None
        ),
        *history_parts(regression.machine_id, row.case, row.metric, key="regression-series"),
        Pairs("Who said what", inbox.story(each)),
        *issue_of_case(filters, sides, row.case),
        *parts.notes(["The same sides judged again, on all that is stored of them:"]),
        Lines((inbox.compare_command(regression),), code=True),
    )
