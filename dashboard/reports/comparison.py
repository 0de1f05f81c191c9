"""A comparison as the parts of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from dashboard import theme, upgrade_rows, verdict_words
from dashboard.charts import verdict_matrix
from dashboard.reports.content import Chart, Figures, Lines, Section
from dashboard.reports.svg import draw
from dashboard.reports.tables import table_of
from db import units
from db.verdicts.results import Comparison, Row
from db.verdicts.vocabulary import METRIC_NAMES, Metric, Verdict

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
    "trials": "Trials",
}
_NUMERIC = ("base", "head", "change", "interval", "q", "trials")
_SHOWN_VERDICTS = (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.INCONCLUSIVE)


def sections(comparison: Comparison, labels: Mapping[str, str], metric: Metric) -> tuple[Section, ...]:
    """The finding, the matrix on `metric`, every verdict, the worst first, and who was left out.

    `labels` maps workload ids to labels.
    """
    moved = verdict_words.worst_first(row for row in comparison.rows if row.verdict is not Verdict.UNCHANGED)
    still = [row for row in comparison.rows if row.verdict is Verdict.UNCHANGED]
    parts: list[Section] = [Lines(lines=comparison.sentences), _figures(comparison)]
    parts += _matrix(comparison, labels, metric)
    confidence = comparison.policy.confidence
    if moved:
        parts.append(_verdicts("What is not unchanged", moved, labels, confidence))
    if still:
        parts.append(_verdicts("Unchanged within the margin", still, labels, confidence))
    if comparison.left_out:
        lines = tuple(verdict_words.left_out_lines(comparison.left_out))
        parts.append(Lines(title="Left out of the comparison", lines=lines, listed=True))
    return tuple(parts)


def _figures(comparison: Comparison) -> Figures:
    mean, counts = comparison.geomean, comparison.counts
    return Figures(
        figures=(
            ("Verdict", comparison.verdict.value),
            ("Cases matched", f"{units.count(comparison.matched)} of {units.count(comparison.total)}"),
            ("Geomean speedup, base", units.ratio(mean.base)),
            ("Geomean speedup, head", units.ratio(mean.head)),
            *((verdict.value.capitalize(), units.count(counts[verdict])) for verdict in _SHOWN_VERDICTS),
        )
    )


def _matrix(comparison: Comparison, labels: Mapping[str, str], metric: Metric) -> list[Section]:
    cells = verdict_matrix.cells(comparison, metric, labels)
    if cells.empty or len(cells) > _MOST_CELLS:
        return []
    shown = tuple(str(verdict) for verdict in Verdict if verdict.value in set(cells["verdict"]))
    word = METRIC_NAMES[metric]
    spec = verdict_matrix.spec(
        tuple(sorted(set(cells["workload"]))), tuple(theme.ordered(cells["strategy"])), shown, word
    )
    return [
        Chart(
            title=f"{word} of head against base, case by case",
            caption=f"{verdict_words.tally([row for row in comparison.rows if row.metric is metric])}. "
            "Each cell: the change and the verdict on it.",
            alt=f"Verdict on {word.lower()} of every workload with every strategy, as text in cells",
            svg=draw(spec, {"main": cells, "chosen": cells.iloc[:0]}),
        )
    ]


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
