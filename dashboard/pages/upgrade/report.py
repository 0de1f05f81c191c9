"""A comparison as the parts of a report."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from dashboard.links import links
from dashboard.links.links import Link, Page, judged_metric
from dashboard.pages.evidence.content import evidence
from dashboard.pages.evidence.report import evidence_parts, series_parts
from dashboard.pages.regressions import inbox
from dashboard.pages.upgrade import charts, content
from dashboard.read.data import filters_of, read_regressions, read_trials
from dashboard.read.database import reader
from dashboard.read.snapshots import Snapshot
from dashboard.render import theme, verdict_words
from dashboard.reports.content import Chart, Figures, Lines, Section
from dashboard.reports.page import LONGEST_CELL
from dashboard.reports.svg import draw
from dashboard.reports.tables import listed, table_of
from dashboard.write import sign_offs
from db.judge.compare.whole import sentences
from db.judge.results import Comparison, Row
from db.judge.vocabulary import Metric, Verdict
from db.queries.regressions import RegressionState
from db.queries.reports import sign_offs as reports_sign_offs
from db.records.reports import SignOff
from db.wording import units
from db.wording import verdicts as wording
from db.wording.marks import BOUND_TITLE, bound_word
from db.wording.metrics import METRICS

# The decisions on an upgrade as the parts of a report: a long note in short, and whole at its end.


def decisions(known: Sequence[SignOff] | None) -> tuple[Section, ...]:
    """What is decided, and what was decided before. `known` oldest first, None where nobody decides."""
    if known is None:
        return ()
    decided = sign_offs.in_force(known)
    lines = ["Nobody has signed this upgrade off yet."]
    if decided is not None:
        note = decided.note or ""
        short = sign_offs.shortened(note)
        lines = [sign_offs.sentence(decided), *_paragraphs(short)]
        lines += ["The whole note stands at the end of this report."] if short != note else []
        lines.append(f"The judge said then: {decided.verdict}")
    for each in reversed(known):
        if each is not decided:
            replaced = f"{sign_offs.sentence(each)} Replaced."
            lines.append(sign_offs.withdrawal(each) if each.withdrawn_at else replaced)
    return (Lines(title="Sign-off", lines=tuple(lines)),)


def whole_note(known: Sequence[SignOff] | None) -> tuple[Section, ...]:
    """The note of the decision in force, where `decisions` has it in short."""
    decided = sign_offs.in_force(known or ())
    note = (decided.note if decided else None) or ""
    if sign_offs.shortened(note) == note:
        return ()
    return (Lines(title="The whole note of the sign-off", lines=tuple(_paragraphs(note))),)


def _paragraphs(note: str) -> list[str]:
    """Its lines, none longer than what a report shows of one text."""
    return [part for line in note.splitlines() for part in textwrap.wrap(line, LONGEST_CELL)]


# More cells than this cannot be read on paper; the tables say the same.
_MOST_CELLS = 240
_COLUMNS = {
    "workload": "Workload",
    "strategy": "Strategy",
    "metric": "Metric",
    "verdict": "Verdict",
    "base": "Base",
    "head": "Head",
    "change": "Change",
    "interval": "Interval",
    "q": "q",
    "moved": "Who moved",
    **BOUND_TITLE,
    "trials": "Trials",
}
_CASE = {"workload": "Workload", "strategy": "Strategy", **BOUND_TITLE}
_NUMERIC = ("base", "head", "change", "interval", "q", "trials")
_SHOWN_VERDICTS = (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.INCONCLUSIVE)


@dataclass(frozen=True)
class Beside:
    """What stands with a comparison: in what the builds differ (`part`, `base`, `head`), the decisions on the
    upgrade, oldest first, what is recorded of it, and the parts on the case in focus. None where a comparison
    is of no two builds, for which nobody decides or looks at a case.
    """

    differs: pd.DataFrame
    signed: Sequence[SignOff] | None = None
    recorded: Sequence[RegressionState] | None = None
    in_focus: tuple[Section, ...] = ()


def sections(
    comparison: Comparison, labels: Mapping[str, str], metric: Metric, beside: Beside
) -> tuple[Section, ...]:
    """The finding, the matrix on `metric`, what stands beside it, every verdict, the worst first, who was
    left out, and a long note on the decision.

    `labels` maps workload ids to labels.
    """
    said = (
        sentences(comparison, inbox.confirmed_slower(beside.recorded))
        if beside.recorded is not None
        else None
    )
    return (
        Lines(lines=said or comparison.sentences),
        _figures(comparison),
        *_recorded(beside.recorded),
        *decisions(beside.signed),
        *_matrix(comparison, labels, metric),
        *beside.in_focus,
        *_shift(comparison, labels),
        *_counts(comparison, labels),
        *_differs(beside.differs),
        *_every_verdict(comparison, labels),
        *_left_out(comparison),
        *whole_note(beside.signed),
    )


def _figures(comparison: Comparison) -> Figures:
    mean, counts = comparison.geomean, comparison.counts
    matched, naive = (
        " → ".join(map(units.ratio, pair))
        for pair in ((mean.base, mean.head), (mean.naive_base, mean.naive_head))
    )
    return Figures(
        figures=(
            ("Verdict", f"{wording.marked(comparison.verdict)}"),
            (f"Geomean speedup, matched ({units.plural(mean.cases, 'case')})", matched),
            (f"Geomean speedup, naive ({mean.naive_base_cases} → {mean.naive_head_cases} cases)", naive),
            ("Cases compared", f"{units.count(comparison.matched)} of {units.count(comparison.total)}"),
            *((f"Figures {verdict.value}", units.count(counts[verdict])) for verdict in _SHOWN_VERDICTS),
        )
    )


def _recorded(recorded: Sequence[RegressionState] | None) -> tuple[Section, ...]:
    """How far people and fresh trials are with the regressions of these two builds."""
    if not recorded:
        return ()
    what = units.plural(len(recorded), "figure")
    return (Lines(lines=(f"In the inbox {what} of these builds: {inbox.counted(recorded)}.",)),)


def _matrix(comparison: Comparison, labels: Mapping[str, str], metric: Metric) -> list[Section]:
    cells = charts.cells(comparison, metric, labels)
    if cells.empty:
        return []
    word = METRICS[metric].name
    title = f"{word} of head against base, case by case"
    if len(cells) > _MOST_CELLS:
        return [Lines(title=title, lines=(f"{len(cells)} cells are too many to read; the tables say it.",))]
    shown = tuple(str(verdict) for verdict in Verdict if verdict.value in set(cells["verdict"]))
    spec = charts.spec(
        tuple(sorted(set(cells["workload"]))), tuple(theme.ordered(cells["strategy"])), shown, word
    )
    return [
        Chart(
            title=title,
            caption=f"{wording.tally([row for row in comparison.rows if row.metric is metric])}. "
            "Each cell: the change and the verdict on it.",
            alt=f"Verdict on {word.lower()} of every workload with every strategy, as text in cells",
            svg=draw(spec, {"main": cells, "chosen": cells.iloc[:0]}),
        )
    ]


def _shift(comparison: Comparison, labels: Mapping[str, str]) -> tuple[Section, ...]:
    table = content.shift_table(comparison, labels)
    if table.empty:
        return ()
    columns, numbers = dict(_CASE), []
    for metric in (Metric.COMPILE_COST, Metric.BREAK_EVEN):
        moved, change, verdict = (f"{metric.value}_{part}" for part in ("from_to", "change", "verdict"))
        columns |= {moved: METRICS[metric].name, change: "Change", verdict: "Verdict"}
        numbers += [moved, change]
    return (table_of(table, columns, title="Compile cost and break-even", numeric=numbers),)


def _counts(comparison: Comparison, labels: Mapping[str, str]) -> tuple[Section, ...]:
    """What passes no more or again, breaks or recompiles."""
    title = "What passes, graph breaks, recompiles"
    changed = content.count_changes(comparison, labels)
    failing = listed("Fails on both sides", content.failing_on_both(comparison, labels))
    if not comparison.rows:
        said = "Nothing was compared, so nothing is known of what passes, breaks or recompiles."
        return (Lines(title=title, lines=(said,)),)
    if changed.empty:
        said = "Every compared case passes or fails as before, with as many graph breaks and recompiles."
        return (Lines(title=title, lines=(said,)), *failing)
    columns = _CASE | {
        "metric": "Figure",
        "base": "Base",
        "head": "Head",
        "verdict": "Verdict",
        "reason": "Why",
    }
    return (table_of(changed, columns, title=title, numeric=("base", "head")), *failing)


def _differs(differs: pd.DataFrame) -> tuple[Section, ...]:
    title = "What differs between the builds"
    if differs.empty:
        return (Lines(title=title, lines=("No part of the builds that is stored differs.",)),)
    return (table_of(differs, {"part": "Part", "base": "Base", "head": "Head"}, title=title),)


def _every_verdict(comparison: Comparison, labels: Mapping[str, str]) -> tuple[Section, ...]:
    moved = wording.worst_first(row for row in comparison.rows if row.verdict is not Verdict.UNCHANGED)
    still = [row for row in comparison.rows if row.verdict is Verdict.UNCHANGED]
    confidence = comparison.policy.confidence
    return tuple(
        _verdicts(title, rows, labels, confidence)
        for title, rows in (("What is not unchanged", moved), ("Unchanged within the margin", still))
        if rows
    )


def _left_out(comparison: Comparison) -> tuple[Section, ...]:
    """Every case that entered no comparison, by name."""
    if not comparison.left_out:
        return ()
    rows = pd.DataFrame(
        [
            (verdict_words.left_out_label(case), case.strategy, case.verdict.value, case.reason)
            for case in comparison.left_out
        ],
        columns=["workload", "strategy", "verdict", "reason"],
    )
    columns = _CASE | {"verdict": "Verdict", "reason": "Why"}
    return (table_of(rows, columns, title="Left out of the comparison"),)


def _verdicts(title: str, rows: Sequence[Row], labels: Mapping[str, str], confidence: float) -> Section:
    frame = pd.DataFrame(
        [
            {
                "workload": verdict_words.workload_label(row.case, labels),
                "strategy": row.strategy,
                **content.row_cells(row),
            }
            for row in rows
        ]
    )
    tones = [row.verdict.value for row in rows]
    titles = _COLUMNS | {"interval": verdict_words.interval_title(confidence)}
    return table_of(frame, titles, title=title, numeric=_NUMERIC, tones=tones)


# What the page Upgrade shows beside its comparison, for a report: a case in focus, decisions, the inbox.


def beside(
    snapshot: Snapshot, link: Link, comparison: Comparison, labels: Mapping[str, str], differs: pd.DataFrame
) -> Beside:
    """Of the upgrade that `link` names. `labels`: workload id -> label; `differs` as `Beside` has it."""
    recorded = links.move(link, Page.REGRESSIONS, base=link.base, head=link.head)
    return Beside(
        differs=differs,
        signed=reports_sign_offs(reader(), str(link.machine), str(link.base), str(link.head)),
        recorded=inbox.chosen(read_regressions(snapshot), recorded),
        in_focus=_in_focus(snapshot, link, comparison, labels),
    )


def _in_focus(
    snapshot: Snapshot, link: Link, comparison: Comparison, labels: Mapping[str, str]
) -> tuple[Section, ...]:
    """Both sides of the case that `link` is about."""
    if link.focus is None:
        return ()
    title = f"{link.focus} with {link.focus_strategy or 'any strategy'}"
    asked = (link.focus, link.focus_strategy)
    rows = [
        row
        for row in comparison.rows
        if (verdict_words.workload_label(row.case, labels), row.strategy) == asked
    ]
    if not rows:
        left_out = [
            case
            for case in comparison.left_out
            if (verdict_words.left_out_label(case), case.strategy) == asked
        ]
        said = [f"Left out of the comparison, {case.verdict}: {case.reason}" for case in left_out]
        return (Lines(title=title, lines=tuple(said) or (f"{title} is no case of this comparison.",)),)
    filters = replace(filters_of(link), builds=(str(link.base), str(link.head)))
    metric, sides = judged_metric(link), (comparison.base, comparison.head)
    found = evidence(read_trials(snapshot, filters), sides, rows[0].case, rows, metric)
    title = ", ".join(filter(None, (title, bound_word(rows[0].bound))))
    parts = evidence_parts(found, metric, title, confidence=comparison.policy.confidence)
    return parts + series_parts(snapshot, link.machine, rows[0].case, metric)
