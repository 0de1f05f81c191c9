"""What a comparison says: its verdict, the change of every case, one case in focus, who was left out.

The headline is worded in `headline.py`, the sentences below it by the judge (`db.judge.compare.whole`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import Link, Page, requested_metric, verdict_metric
from compilewatch.dashboard.pages.upgrade import charts
from compilewatch.dashboard.pages.upgrade.changes import (
    change_parts,
    compile_cost_and_break_even,
    every_verdict,
    shown_rows,
    summary,
)
from compilewatch.dashboard.pages.upgrade.focus import in_focus
from compilewatch.dashboard.pages.upgrade.headline import every_sentence, figures, headline_parts
from compilewatch.dashboard.parts import parts, verdict_words
from compilewatch.dashboard.parts.cases import CASE, floors_of
from compilewatch.dashboard.parts.parts import BOUND, Empty, Lines, PageContent, Part, TableColumn
from compilewatch.dashboard.read.data import (
    filters_of,
    read_explanations,
    read_pair,
    read_regressions,
    read_workloads,
)
from compilewatch.dashboard.read.shaping import labels_of
from compilewatch.dashboard.read.versions import cached
from compilewatch.dashboard.verdicts import inbox, tables
from compilewatch.dashboard.verdicts.pair import with_builds
from compilewatch.dashboard.verdicts.tables import SIDES, TRIALS
from compilewatch.db import units
from compilewatch.db.cause.compiler_change import SourceChange
from compilewatch.db.columns.metrics import MEASURED_METRICS, METRICS, REQUESTED_METRICS
from compilewatch.db.judge.decide import GROUPS
from compilewatch.db.judge.results import Comparison
from compilewatch.db.judge.sentences import moved_in
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from compilewatch.db.queries.causes import Case
from compilewatch.db.service.regressions import RegressionState

MOST_CODE_LINES = 300
"""As many lines of generated code."""
_COUNTS = {
    **CASE,
    "metric": TableColumn("Metric"),
    **SIDES,
    "verdict": TableColumn("Verdict"),
    "reason": TableColumn("Why", wide=True),
    **parts.hidden({**BOUND, **TRIALS}),
}
_ALWAYS = ("slower", "faster", "undecided", "unchanged")
_ALIKE = Lines(("No part of the builds that is stored differs.",), tables.DIFFERS)


@dataclass(frozen=True)
class Beside:
    """What stands with a comparison: what is recorded of it, None where it is of no two builds; the case in
    focus, why cases changed, how generated code differs, the machine's noise floors.
    """

    recorded: Sequence[RegressionState] | None = None
    in_focus: tuple[Part, ...] = ()
    why: Sequence[str] = ()
    code: Mapping[Case, Sequence[SourceChange]] = field(default_factory=dict)
    floors: tuple[NoiseFloor, ...] = ()


def newest_pair(link: Link) -> PageContent:
    """The page of the two builds that it opens with. Raises VerdictError where they cannot be compared."""
    link = with_builds(link)
    if link.base and link.head:
        return page(link)
    return PageContent((Empty("Under these filters fewer than two builds were measured."),), link)


@cached
def page(link: Link) -> PageContent:
    """The page of the two builds that `link` names. Raises VerdictError."""
    comparison, labels, beside = _comparison(link)
    beside = replace(beside, in_focus=in_focus(link, comparison, labels))
    return content_of(comparison, labels, link, beside)


@cached
def _comparison(link: Link) -> tuple[Comparison, dict[str, str], Beside]:
    """The comparison with its labels (workload id -> label)."""
    comparison = read_pair(link, asked=requested_metric(link))
    labels = labels_of(read_workloads(filters_of(link)))
    recorded = inbox.chosen(read_regressions(), inbox_link(link))
    floors, why = floors_of(comparison.machine_id), read_explanations(comparison)
    return comparison, labels, Beside(recorded, why=why, floors=floors)


def inbox_link(link: Link) -> Link:
    """The inbox of what is recorded between the two builds of `link`, under its filters."""
    return links.move(link, Page.REGRESSIONS, base=link.base, head=link.head)


def content_of(comparison: Comparison, labels: Mapping[str, str], link: Link, beside: Beside) -> PageContent:
    """A comparison on the metric of `link`. `labels`: workload id -> label."""
    metric = verdict_metric(link)
    forest, cases = change_parts(comparison.with_requested(), metric, labels, link, beside.floors)
    return PageContent(
        (
            *headline_parts(comparison, beside.recorded, metric),
            *forest,
            *beside.in_focus,
            *cases,
            *parts.listed("Why cases changed", beside.why, key="why"),
            *parts.how_sure(
                figures(comparison),
                *summary(comparison, metric, labels),
                *every_sentence(comparison, beside.recorded, metric),
            ),
            *parts.folded(compile_cost_and_break_even(comparison, labels, beside.floors, metric)),
            *_counts(comparison, labels),
            *(tables.what_differs("upgrade-environment", comparison, "base and head") or (_ALIKE,)),
            *tables.left_out_parts("Left out of the comparison", comparison.left_out, CASE),
        ),
        link,
        builds=(*comparison.head.build_ids, *comparison.base.build_ids),
        appendix=lambda: (
            *every_verdict(comparison, labels, beside.floors),
            *_code(comparison, labels, beside.code),
        ),
    )


@cached
def metric_words(link: Link) -> dict[str, str]:
    """The metrics that may be chosen, by key: name, and how many cases moved in it, as the page would count
    them. Raises VerdictError.
    """
    comparison, _, _ = _comparison(link)
    tally = comparison.tally_of(verdict_metric(link))
    return {
        metric.value: METRICS[metric].name + (f": {moved}" if (moved := moved_in(tally, metric)) else "")
        for metric in (*MEASURED_METRICS, *REQUESTED_METRICS)
    }


@cached
def groups_of(link: Link) -> tuple[dict[str, str], tuple[str, ...]]:
    """The groups that cases may be in, with their words and numbers of cases, and those that `link` shows.
    Raises VerdictError.
    """
    comparison, labels, _ = _comparison(link)
    metric, comparison = verdict_metric(link), comparison.with_requested()
    counted = Counter(comparison.groups(metric).values())
    words = {
        group: f"{units.capitalized(charts.group_word(group, metric))} {units.count(counted[group])}"
        for group in GROUPS
        if counted[group] or group in _ALWAYS
    }
    return words, tuple(shown_rows(comparison, metric, labels, link))


def _counts(comparison: Comparison, labels: Mapping[str, str]) -> tuple[Part, ...]:
    """What passes no more or again, breaks or recompiles."""
    title = "What passes, graph breaks, recompiles"
    if not comparison.rows:
        return ()
    changed = tables.count_changes(comparison, labels)
    same = "Every compared case passes or fails as before, with as many graph breaks and recompiles."
    alt = "Cases that pass no more or again, and changed graph breaks and recompiles"
    return (
        *((Lines((same,), title),) if changed.empty else ()),
        *parts.table("upgrade-counts", alt, changed, _COUNTS, title=title),
        *parts.listed("Fails on both sides", tables.failing_on_both(comparison, labels)),
    )


def _code(
    comparison: Comparison, labels: Mapping[str, str], code: Mapping[Case, Sequence[SourceChange]]
) -> tuple[Part, ...]:
    """The generated code of base and head, graph by graph, as long as a report has room for it."""
    rows = {row.case.ids: row for row in comparison.rows}
    shown: list[Part] = []
    room, left_out = MOST_CODE_LINES, 0
    for case, changes in code.items():
        title = f"{verdict_words.workload_label(rows[case].case, labels)} with {rows[case].strategy}"
        for change in changes:
            if len(change.lines) > room:
                left_out += 1
                continue
            room -= len(change.lines)
            what = f"Generated code of {title}, graph {change.graph}: base (-), head (+)"
            shown.append(Lines(change.lines, what, code=True))
    rest = f"The code of {units.plural(left_out, 'more graph')} differs." if left_out else ""
    return (*shown, *parts.notes([rest]))
