"""Recorded regressions as the parts of a report."""

from __future__ import annotations

from collections import Counter

from dashboard.links.links import Link
from dashboard.pages.evidence.content import evidence
from dashboard.pages.evidence.report import evidence_parts, series_parts
from dashboard.pages.regressions import inbox
from dashboard.pages.upgrade.content import case_title
from dashboard.read.data import read_choices, read_regressions, read_trials
from dashboard.read.snapshots import Snapshot
from dashboard.render.verdict_words import interval_title
from dashboard.reports.content import Figures, Frozen, Lines, Section, nothing_fits
from dashboard.reports.tables import table_of
from db.queries.filters import Filters
from db.queries.regressions import RegressionState
from db.wording import units
from db.wording.marks import BOUND_TITLE
from db.wording.metrics import METRICS

_INBOX = {
    "state": "State",
    "workload": "Workload",
    "strategy": "Strategy",
    "metric": "Figure",
    "base": "Base",
    "head": "Head",
    "change": "Change",
    "interval": interval_title(None),
    "moved": "Who moved",
    **BOUND_TITLE,
    "cause": "Cause class",
    "from": "From",
    "to": "To",
    "machine": "Machine",
    "recorded": "Recorded",
    "by": "Last said by",
    "note": "Note",
    "link": "Link",
}
_HIDDEN = "It was chosen by its link; the filters of this report leave it out of its table."
_NUMBERS = ("base", "head", "change", "interval")


def frozen(snapshot: Snapshot, link: Link) -> Frozen:
    """The inbox under the filters of `link`, and for each chosen regression its evidence and story."""
    recorded = read_regressions(snapshot)
    shown = inbox.chosen(recorded, link)
    if not shown:
        raise nothing_fits()
    table = inbox.inbox_table(shown)
    table = table.assign(recorded=[units.moment(at) for at in table["recorded_at"]])
    counts = Counter(each.state for each in shown)
    parts: tuple[Section, ...] = (
        Figures(figures=tuple((state.value.capitalize(), units.count(counts[state])) for state in counts)),
        table_of(table, _INBOX, title="Recorded regressions", numeric=_NUMBERS),
    )
    for each in recorded:
        if each.regression.regression_id in link.regression:
            parts += _regression(snapshot, each, listed=each in shown)
    builds = dict.fromkeys(
        build
        for each in shown
        for side in (each.regression.head, each.regression.base)
        for build in side.build_ids
    )
    documents = [each.regression.model_dump(mode="json") for each in shown]
    known = read_choices(snapshot).builds
    return Frozen(parts, link, tuple(key for key in builds if key in known), {"regressions": documents})


def _regression(snapshot: Snapshot, each: RegressionState, *, listed: bool) -> tuple[Section, ...]:
    """The evidence of a chosen one; `listed` where the table of the report has it."""
    found = each.regression
    row = found.row
    title = f"{METRICS[row.metric].name} of {row.workload} with {row.strategy}"
    runs = (*found.base.run_ids, *found.head.run_ids)
    machines = (found.machine_id,) if found.machine_id else ()
    trials = read_trials(snapshot, Filters(machines=machines, runs=runs))
    shown = evidence(trials, (found.base, found.head), row.case, [row], row.metric)
    parts = evidence_parts(shown, row.metric, title, confidence=None)
    parts += series_parts(snapshot, found.machine_id, row.case, row.metric)
    differs = inbox.environment(found)
    if not differs.empty:
        columns = {"part": "Part", "base": "Base", "head": "Head"}
        parts = (table_of(differs, columns, title=f"{title}: what differs between the builds"), *parts)
    revised = f" Revision {found.revision} of this verdict." if found.revision else ""
    about = (
        *(() if listed else (_HIDDEN,)),
        f"{inbox.state_text(each.state)}: {inbox.MEANINGS[each.state]}. Recorded "
        f"{units.moment(found.recorded_at)} on {found.machine}.{revised}",
        f"The same sides judged again, on all that is stored of them: {inbox.compare_command(found)}",
    )
    said_of_it = Lines(title=f"{case_title(row)}: {row.reason}", lines=about)
    story = inbox.story(each)
    story = story.assign(at=[units.moment(at) for at in story["at"]])
    said = {"at": "When", "state": "State", "by": "By", "note": "Note", "link": "Link"}
    return (said_of_it, *parts, table_of(story, said, title="Who said what"))
