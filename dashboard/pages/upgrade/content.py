"""What a comparison says: its verdict, the change of every case, one case in focus, who was left out.

The headline is worded in `dashboard.verdicts.headlines`, the sentences below it by the judge
(`db.judge.compare.whole`).
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from dashboard.charts.style import ChartContent
from dashboard.links import links
from dashboard.links.links import Link, Page, asked_metric, verdict_metric
from dashboard.pages.upgrade import charts
from dashboard.pages.upgrade.focus import in_focus
from dashboard.parts import parts, verdict_words
from dashboard.parts.cases import CASE, floors_of
from dashboard.parts.parts import (
    BOUND,
    CASE_FACTS,
    Chart,
    Empty,
    Figure,
    Figures,
    Lines,
    PageContent,
    PageHeadline,
    Part,
    Table,
    TableColumn,
)
from dashboard.read.data import (
    filters_of,
    read_choices,
    read_explanations,
    read_pair,
    read_regressions,
    read_workloads,
)
from dashboard.read.versions import cached
from dashboard.text.glossary import explained
from dashboard.verdicts import headlines, inbox, tables
from dashboard.verdicts.pair import with_builds
from dashboard.verdicts.tables import Q_VALUE, SIDES, TRIALS, change_columns, sides_of
from dashboard.write import sign_offs
from db import units
from db.cause.compiler_change import SourceChange
from db.columns.metrics import METRICS
from db.judge.compare.whole import sentences
from db.judge.results import Comparison, Row
from db.judge.statistics.noise_floor import NoiseFloor
from db.judge.words import verdicts as wording
from db.queries.cases.causes import Case
from db.queries.people.regressions import RegressionState
from db.records.people.sign_offs import SignOff
from db.records.vocabulary import Metric, Verdict

LONGEST_LINE = 300
"""As much of one text as a report shows."""
MOST_CODE_LINES = 300
"""As many lines of generated code."""
NOT_FILED = "Not filed yet: `compilewatch gate` files regressions."
NOT_SIGNED = "Nobody has signed this upgrade off yet."
_SUMMARY = {
    "verdict": TableColumn("Verdict"),
    **parts.quantities("count", {"cases": "Cases"}),
    **parts.quantities("change", {"mean": "Mean change"}),
    "range": TableColumn("Range", "interval", numeric=True, unit="change"),
}
_FACTS = CASE_FACTS | TRIALS
_COUNTS = {
    **CASE,
    "metric": TableColumn("Metric"),
    **SIDES,
    "verdict": TableColumn("Verdict"),
    "reason": TableColumn("Why", wide=True),
    **parts.hidden({**BOUND, **TRIALS}),
}
_VERDICTS = {"verdicts-moved": "What is not unchanged", "verdicts-still": "Unchanged within the margin"}
_DIFFERS = parts.texts({"part": "Part", "base": "Base", "head": "Head"})


@dataclass(frozen=True)
class Beside:
    """What stands with a comparison: in what the builds differ (`part`, `base`, `head`), what is recorded of
    it, the decisions on the upgrade, oldest first, the case in focus, why cases changed, how generated code
    differs, the machine's noise floors. None where it is of no two builds, for which nobody decides.
    """

    differs: pd.DataFrame
    recorded: Sequence[RegressionState] | None = None
    signed: Sequence[SignOff] | None = None
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
    filters = filters_of(link)
    comparison = read_pair(link, asked=asked_metric(link))
    known = read_workloads(filters)
    labels = dict(zip(known["workload_id"], known["workload_label"], strict=True))
    rows = read_choices().build_rows
    base, head = (verdict_words.side_parts(side, rows) for side in (comparison.base, comparison.head))
    differs = verdict_words.environment_diff(base, head, comparison.changed_components)
    recorded = inbox.chosen(read_regressions(), inbox_link(link))
    floors, why = floors_of(comparison.machine_id), read_explanations(comparison)
    table = pd.DataFrame(differs, columns=list(_DIFFERS))
    return comparison, labels, Beside(table, recorded, why=why, floors=floors)


def inbox_link(link: Link) -> Link:
    """The inbox of what is recorded between the two builds of `link`, under its filters."""
    return links.move(link, Page.REGRESSIONS, base=link.base, head=link.head)


def content_of(comparison: Comparison, labels: Mapping[str, str], link: Link, beside: Beside) -> PageContent:
    """A comparison on the metric of `link`. `labels`: workload id -> label."""
    metric = verdict_metric(link)
    return PageContent(
        (
            *_verdict(comparison, beside.recorded),
            *_changes(comparison.with_asked(), metric, labels, link, beside.floors),
            *beside.in_focus,
            *parts.listed("Why cases changed", beside.why, key="why"),
            *parts.how_sure(
                _figures(comparison),
                *_summary(comparison, metric, labels),
                *_more(comparison, beside.recorded),
            ),
            *_decisions(beside.signed),
            *_shift(comparison, labels, beside.floors, metric),
            *_counts(comparison, labels),
            *_differs(beside.differs),
            *tables.left_out_parts("Left out of the comparison", comparison.left_out, CASE),
        ),
        link,
        builds=(*comparison.head.build_ids, *comparison.base.build_ids),
        appendix=lambda: (
            *_every_verdict(comparison, labels, beside.floors),
            *_code(comparison, labels, beside.code),
            *_whole_note(beside.signed),
        ),
    )


# The verdict on an upgrade as a whole: the judge's sentences, what to measure next, three figures.


def _verdict(comparison: Comparison, recorded: Sequence[RegressionState] | None) -> tuple[Part, ...]:
    """The answer large, all that is counted and what people said of it below."""
    text, tone = headlines.of_upgrade(comparison.tally)
    return (
        PageHeadline(text, tone, "verdict"),
        Lines((_lines(comparison, recorded)[0],), key="tally"),
        *_recorded(comparison, recorded),
    )


def _lines(comparison: Comparison, recorded: Sequence[RegressionState] | None) -> Sequence[str]:
    if recorded is None:
        return comparison.sentences
    return sentences(comparison, inbox.confirmed_slower(recorded))


def _more(comparison: Comparison, recorded: Sequence[RegressionState] | None) -> tuple[Lines, ...]:
    """All sentences of the judge, and what to measure next."""
    advice = comparison.advice.sentences if comparison.advice else ()
    return parts.notes([*_lines(comparison, recorded), *advice], key="sentences")


def _recorded(comparison: Comparison, recorded: Sequence[RegressionState] | None) -> tuple[Part, ...]:
    """How far people and fresh trials are with the regressions of these two builds."""
    if recorded:
        what = units.plural(len(recorded), "regression")
        return parts.notes(
            [f"In the inbox {what} of these builds: {inbox.counted(recorded)}."], key="recorded"
        )
    filed = recorded is None or comparison.verdict is not Verdict.REGRESSED
    return () if filed else parts.notes([NOT_FILED], key="not-filed")


def _figures(comparison: Comparison) -> Figures:
    mean = comparison.geomean
    matched, naive = (
        f"{units.ratio(base)} → {units.ratio(head)}"
        for base, head in ((mean.base, mean.head), (mean.naive_base, mean.naive_head))
    )
    return Figures(
        (
            Figure(
                "Geomean speedup, matched",
                units.ratio(mean.head),
                f"Over the {units.plural(mean.cases, 'case')} that passed on both sides.",
                matched if mean.base else "",
                tables.tone_of(comparison.verdict, mean.speedup),
            ),
            Figure(
                "Geomean speedup, naive",
                units.ratio(mean.naive_head),
                "Each side over its own set of cases: it moves when cases come or go. Use the matched one.",
                f"{naive} ({mean.naive_base_cases} → {units.plural(mean.naive_head_cases, 'case')})",
            ),
            Figure(
                "Cases compared",
                f"{comparison.matched} of {comparison.total}",
                "The others are listed below with the reason why they were left out.",
                comparison.machine or "",
            ),
        ),
        width_px=230,
        key="figures",
    )


def _decisions(known: Sequence[SignOff] | None) -> tuple[Part, ...]:
    """What is decided, and what was decided before: a long note in short, and whole at the end. `known`
    oldest first, None where nobody decides.
    """
    if known is None:
        return ()
    decided = sign_offs.in_force(known)
    lines = [NOT_SIGNED]
    if decided is not None:
        note = decided.note or ""
        short = sign_offs.shortened(note)
        lines = [sign_offs.sentence(decided), *_paragraphs(short)]
        lines += ["The whole note stands at the end of this report."] if short != note else []
        lines.append(f"The judge said then: {decided.verdict}")
    lines += [sign_offs.past(each) for each in reversed(known) if each is not decided]
    return (Lines(tuple(lines), "Sign-off", key="sign-off"),)


def _whole_note(known: Sequence[SignOff] | None) -> tuple[Part, ...]:
    """The note of the decision in force, where `_decisions` has it in short."""
    decided = sign_offs.in_force(known or ())
    note = (decided.note if decided else None) or ""
    if sign_offs.shortened(note) == note:
        return ()
    return (Lines(tuple(_paragraphs(note)), "The whole note of the sign-off"),)


def _paragraphs(note: str) -> list[str]:
    return [part for line in note.splitlines() for part in textwrap.wrap(line, LONGEST_LINE)]


# The change of every case in one metric: summed up, as a forest plot, and as a table.


def _changes(
    comparison: Comparison,
    metric: Metric,
    labels: Mapping[str, str],
    link: Link,
    floors: Sequence[NoiseFloor],
) -> tuple[Part, ...]:
    name, rows = METRICS[metric].name, charts.frame(comparison, metric, labels)
    cases = tables.cases_table(comparison, metric, labels, floors)
    if cases.empty:
        return (Empty(f"{name}: not compared.", key="upgrade-forest"),)
    return (
        _forest(rows, name, link),
        *_table(
            "upgrade-cases",
            f"Every compared case with its verdict on {name.lower()}, the change and who moved",
            cases,
            _case_columns(comparison.policy.confidence, metric),
            title=f"{name} case by case",
        ),
    )


def _summary(comparison: Comparison, metric: Metric, labels: Mapping[str, str]) -> tuple[Table, ...]:
    name = METRICS[metric].name
    return _table(
        "upgrade-summary",
        f"{name} summed up by verdict",
        tables.summary_table(charts.frame(comparison, metric, labels)),
        _SUMMARY,
        note="Mean change: geometric mean of the changes in the table above.",
    )


def _table(
    key: str, alt: str, frame: pd.DataFrame, columns: Mapping[str, TableColumn], **more: str
) -> tuple[Table, ...]:
    """A table whose rows have the verdict in column `tone`."""
    tones = tuple(frame["tone"]) if len(frame) else ()
    return parts.table(key, alt, frame, columns, tones=tones, **more)


def _forest(rows: pd.DataFrame, name: str, link: Link) -> Chart:
    alt = f"Change of {name.lower()} of every case with its interval and verdict"
    if rows.empty:
        none = ChartContent(f"{name} of head against base", notes=["No case has a value on both sides."])
        return Chart("upgrade-forest", alt, none)
    frames = charts.frames(rows, (link.focus, link.focus_strategy))
    drawn = frames["main"]
    verdicts = tuple(str(each) for each in wording.WORST_FIRST if each.value in set(drawn["verdict"]))
    spec = charts.spec(tuple(drawn["case"]), verdicts, name, charts.domain(drawn))
    more = len(rows) - len(drawn)
    notes = [f"{units.plural(more, 'more case')} in the table."] if more else []
    return Chart(
        "upgrade-forest",
        alt,
        ChartContent(f"{name} of head against base", spec, frames, notes),
        explained="A point is the change of a case, its bar the interval. The grey band is the margin within "
        "which a case counts as unchanged. Grey points are unchanged or inconclusive.",
    )


def _case_columns(confidence: float, metric: Metric) -> dict[str, TableColumn]:
    """Without the speedup where it is the metric: base and head have it."""
    speedups = {"speedup_base": "Speedup of base", "speedup_head": "Speedup of head"}
    ratio = "Head over base of the latency of {}, in the same processes."
    ratios = {"eager_ratio": ("Eager ratio", "eager"), "compiled_ratio": ("Compiled ratio", "compiled code")}
    change = change_columns(confidence)
    return {
        "workload": CASE["workload"],
        "change": change["change"],
        "strategy": CASE["strategy"],
        "verdict": TableColumn("Verdict", explained=explained("verdict", "suspected")),
        **parts.hidden(
            {
                **sides_of(metric),
                "interval": change["interval"],
                **({} if metric is Metric.SPEEDUP else parts.quantities("ratio", speedups)),
                **{
                    name: TableColumn(title, numeric=True, unit="ratio", explained=ratio.format(what))
                    for name, (title, what) in ratios.items()
                },
                "moved": TableColumn("Who moved"),
                **_FACTS,
            }
        ),
        "reason": TableColumn("Why", wide=True),
    }


def _shift(
    comparison: Comparison, labels: Mapping[str, str], floors: Sequence[NoiseFloor], shown: Metric
) -> tuple[Part, ...]:
    """Compile cost and break-even of every case, without the one that is `shown` above."""
    return tuple(
        table
        for metric in (Metric.COMPILE_COST, Metric.BREAK_EVEN)
        if metric is not shown
        for table in _table(
            f"upgrade-{metric.value}",
            f"{METRICS[metric].name} of every case on both sides, with verdicts",
            tables.cases_table(comparison, metric, labels, floors),
            _case_columns(comparison.policy.confidence, metric),
            title=METRICS[metric].name,
        )
    )


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


def _differs(differs: pd.DataFrame) -> tuple[Part, ...]:
    title = "What differs between the builds"
    if differs.empty:
        return (Lines(("No part of the builds that is stored differs.",), title),)
    alt = "Parts of the build that differ between base and head"
    return parts.table("upgrade-environment", alt, differs, _DIFFERS, title=title)


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


def _every_verdict(
    comparison: Comparison, labels: Mapping[str, str], floors: Sequence[NoiseFloor]
) -> tuple[Table, ...]:
    moved = wording.worst_first(row for row in comparison.rows if row.verdict is not Verdict.UNCHANGED)
    still = [row for row in comparison.rows if row.verdict is Verdict.UNCHANGED]
    return tuple(
        table
        for key, rows in (("verdicts-moved", moved), ("verdicts-still", still))
        for table in _verdicts(key, rows, labels, comparison.policy.confidence, floors)
    )


def _verdicts(
    key: str, rows: Sequence[Row], labels: Mapping[str, str], confidence: float, floors: Sequence[NoiseFloor]
) -> tuple[Table, ...]:
    frame = pd.DataFrame(
        [
            {
                "workload": verdict_words.workload_label(row.case, labels),
                "strategy": row.strategy,
                **tables.row_cells(row, floors),
                "tone": row.verdict.value,
            }
            for row in rows
        ]
    )
    columns = {
        **CASE,
        **parts.texts({"metric": "Metric", "verdict": "Verdict"}),
        **SIDES,
        **change_columns(confidence),
        **Q_VALUE,
        "moved": TableColumn("Who moved"),
        **_FACTS,
    }
    return _table(key, _VERDICTS[key], frame, columns, title=_VERDICTS[key])
