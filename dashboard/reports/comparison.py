"""A comparison as the parts of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from dashboard import inbox, theme, upgrade_rows, verdict_words
from dashboard.charts import verdict_matrix
from dashboard.reports import signed
from dashboard.reports.cases import listed
from dashboard.reports.content import Chart, Figures, Lines, Section
from dashboard.reports.svg import draw
from dashboard.reports.tables import table_of
from db import units
from db.queries.regressions import RegressionState
from db.sign_offs import SignOff
from db.verdicts.results import Comparison, Row
from db.verdicts.vocabulary import Metric, Verdict
from db.verdicts.whole import sentences
from db.wording import verdicts as wording
from db.wording.marks import BOUND_TITLE
from db.wording.metrics import METRICS

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
        *signed.decisions(beside.signed),
        *_matrix(comparison, labels, metric),
        *beside.in_focus,
        *_shift(comparison, labels),
        *_counts(comparison, labels),
        *_differs(beside.differs),
        *_every_verdict(comparison, labels),
        *_left_out(comparison),
        *signed.whole_note(beside.signed),
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
    cells = verdict_matrix.cells(comparison, metric, labels)
    if cells.empty:
        return []
    word = METRICS[metric].name
    title = f"{word} of head against base, case by case"
    if len(cells) > _MOST_CELLS:
        return [Lines(title=title, lines=(f"{len(cells)} cells are too many to read; the tables say it.",))]
    shown = tuple(str(verdict) for verdict in Verdict if verdict.value in set(cells["verdict"]))
    spec = verdict_matrix.spec(
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
    table = upgrade_rows.shift_table(comparison, labels)
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
    changed = upgrade_rows.count_changes(comparison, labels)
    failing = listed("Fails on both sides", upgrade_rows.failing_on_both(comparison, labels))
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
                **upgrade_rows.row_cells(row),
            }
            for row in rows
        ]
    )
    tones = [row.verdict.value for row in rows]
    titles = _COLUMNS | {"interval": verdict_words.interval_title(confidence)}
    return table_of(frame, titles, title=title, numeric=_NUMERIC, tones=tones)
