"""What the page Regressions says: the inbox of what got worse, and the evidence of what is chosen in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.pages.regressions.newest_run import finding_columns, newest_run
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import floors_of
from compilewatch.dashboard.parts.parts import (
    Empty,
    Figure,
    Figures,
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
from compilewatch.dashboard.verdicts.evidence import evidence_parts
from compilewatch.dashboard.verdicts.history import history_parts
from compilewatch.dashboard.verdicts.issue import issue_of_case
from compilewatch.dashboard.verdicts.tables import case_title, what_differs
from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.compare.recorded_regressions import tally_lines
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.people.regressions import RegressionState
from compilewatch.db.records.people.triage import OPEN_STATES

_NOTHING = Empty("No recorded regression fits these filters.", "Widen them here or in the sidebar.")
_HIDDEN = "It was chosen by its link; the filters of this report leave it out of its table."
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
    """The inbox under the filters of `link` and the evidence of the first that is chosen, of the others in
    the appendix; where nothing was ever recorded, the newest run.
    """
    recorded = read_regressions()
    if not recorded:
        return PageContent((*newest_run(link), *parts.how_sure(*_steps(link))), link)
    shown = inbox.chosen(recorded, link)
    chosen = [each for each in recorded if each.regression.regression_id in link.regression]
    chosen.sort(key=lambda each: link.regression.index(each.regression.regression_id))
    first = _regression(chosen[0], listed=chosen[0] in shown) if chosen else ()
    machines = {each.regression.machine_id for each in shown} - {None}
    floors = {str(machine): floors_of(machine) for machine in machines}
    return PageContent(
        (*_inbox(shown, inbox_key(), floors), *first, *parts.how_sure(*_steps(link))),
        link,
        builds=_builds(shown, chosen),
        data=lambda: {"regressions": [each.regression.model_dump(mode="json") for each in shown]},
        appendix=lambda: tuple(
            part for each in chosen[1:] for part in _regression(each, listed=each in shown)
        ),
    )


def _steps(link: Link) -> tuple[Part, ...]:
    """How many steps the history of the machine shows, recorded or not."""
    machine = link.machine or read_choices().newest_machine
    filters = Filters(workloads=link.workload, strategies=link.strategy)
    said = read_steps(machine, filters) if machine else ""
    return parts.notes([said] if said else [])


def inbox_key() -> str:
    """The key of the table: a new data version may order its rows anew, so it is another table then."""
    return f"inbox-{drawn_version()}"


def _inbox(shown: Sequence[RegressionState], key: str, floors: inbox.Floors) -> tuple[Part, ...]:
    if not shown:
        return (_NOTHING,)
    counts = Counter(each.state for each in shown)
    waiting, cured = (
        sum(flags) for flags in zip(*((each.is_open, each.is_cured) for each in shown), strict=True)
    )
    closed = len(shown) - waiting - cured
    gone = [f"{units.count(cured)} gone with a later build"] if cured else []
    table = inbox.inbox_table(shown, floors)
    told = tally_lines(each.regression for each in shown if each.is_open)
    return (
        PageHeadline(
            ", ".join([units.plural(waiting, "open regression"), *gone, f"{units.count(closed)} closed"]),
            "bad" if waiting else "good",
        ),
        *parts.listed(
            "To be closed",
            inbox.first_names([each for each in shown if each.is_cured], inbox.cured_line),
            key="cured",
        ),
        Table(
            key,
            "Recorded regressions, a row each: state, case, change, cause, builds and what was said last",
            table,
            _COLUMNS,
        ),
        Figures(
            (
                *(
                    Figure(
                        inbox.state_text(state).capitalize(),
                        units.count(counts[state]),
                        f"{inbox.MEANINGS[state].capitalize()}.",
                    )
                    for state in OPEN_STATES
                ),
                Figure("Closed", units.count(closed), "Expected, fixed or a false alarm."),
            ),
            width_px=140,
        ),
        *([Lines(tuple(told), "What became of all cases there", key="tallies")] if told else []),
    )


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
