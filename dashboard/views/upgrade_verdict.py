"""The verdict on an upgrade as a whole: the judge's sentences and four figures."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard import inbox
from dashboard.foreign_text import escaped
from dashboard.links import Link
from dashboard.views import controls, elements
from db import units
from db.queries.regressions import RegressionState
from db.verdicts.results import Comparison
from db.verdicts.vocabulary import Verdict
from db.wording import verdicts as wording


def draw(comparison: Comparison, recorded: Sequence[RegressionState], inbox_link: Link) -> None:
    """The judge's sentences, the figures behind the first two, and what of it is `recorded` in the inbox."""
    first, *more = comparison.sentences
    with st.container(border=True):
        elements.finding(f"{wording.marked(comparison.verdict)}: {first}")
        elements.notes(more)
        _cards(comparison)
        if recorded or comparison.verdict is Verdict.REGRESSED:
            _recorded(recorded, inbox_link)


def _recorded(recorded: Sequence[RegressionState], inbox_link: Link) -> None:
    """How far people and fresh trials are with the regressions of these two builds."""
    if not recorded:
        elements.note("Nothing of it is in the inbox: runs and gates record what regressed, pages do not.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        what = units.plural(len(recorded), "figure")
        st.markdown(f"In the inbox {what} of these builds: {inbox.counted(recorded)}.", width="content")
        st.button(
            "Open them in the inbox",
            icon=":material/inbox:",
            on_click=controls.go,
            args=(inbox_link.page,),
            kwargs={"machine": inbox_link.machine, "base": inbox_link.base, "head": inbox_link.head},
        )


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
