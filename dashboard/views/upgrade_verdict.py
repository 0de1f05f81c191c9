"""The verdict on an upgrade as a whole: the judge's sentences and four figures."""

from __future__ import annotations

import streamlit as st

from dashboard import verdict_words
from dashboard.foreign_text import escaped
from dashboard.views import elements
from db import units
from db.verdicts.results import Comparison
from db.verdicts.vocabulary import Verdict


def draw(comparison: Comparison) -> None:
    """The judge's sentences, and the figures behind the first two."""
    first, *more = comparison.sentences
    with st.container(border=True):
        elements.finding(f"{verdict_words.MARKS[comparison.verdict]} {comparison.verdict.value}: {first}")
        elements.notes(more)
        _cards(comparison)


def _cards(comparison: Comparison) -> None:
    mean, counts = comparison.geomean, comparison.counts
    naive = " → ".join(units.ratio(value) for value in (mean.naive_base, mean.naive_head))
    with st.grid(4, min_column_width=165):
        st.metric(
            "Geomean speedup, matched",
            units.ratio(mean.head),
            _change(mean.base, mean.head),
            delta_description=f"from {units.ratio(mean.base)}" if mean.base else None,
            help=f"Over the {units.plural(mean.cases, 'case')} that passed on both sides.",
            border=True,
            height="stretch",
        )
        elements.card(
            "Geomean speedup, naive",
            units.ratio(mean.naive_head),
            beside=f"{naive} ({mean.naive_base_cases} → {mean.naive_head_cases} cases)",
            explained="Each side over its own set of cases: it moves when cases come or go. "
            "Use the matched one.",
        )
        elements.card(
            "Cases compared",
            f"{comparison.matched} of {comparison.total}",
            beside=escaped(comparison.machine or ""),
            explained="The others are listed below with the reason why they were left out.",
        )
        elements.card(
            "Figures regressed",
            units.count(counts[Verdict.REGRESSED]) if comparison.rows else units.MISSING,
            beside=f"{counts[Verdict.IMPROVED]} improved, {counts[Verdict.INCONCLUSIVE]} inconclusive"
            if comparison.rows
            else "nothing was compared",
            explained="Verdicts over all figures of all compared cases; a case has one per figure.",
        )


def _change(base: float | None, head: float | None) -> str | int | None:
    """In percent; 0, which has no arrow, for what rounds to nothing."""
    if not base or not head:
        return None
    text = units.percent(head / base - 1, signed=True)
    return text if text.strip("+-0. %") else 0
