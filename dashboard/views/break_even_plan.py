"""What a plan of steps per process and restarts per day costs: cards and a table in steps, time and money."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.foreign_text import escaped
from dashboard.links import Link
from dashboard.prepared import break_even_plan as plan
from dashboard.views import elements
from db.metrics.mode_choice import ModeOption
from db.wording.marks import BOUND_TITLE


def cards(link: Link, options: list[ModeOption]) -> None:
    """The plan of the sliders in four figures."""
    if len(options) < 2:
        return
    best, figures = plan.figures(link, options)
    with st.grid(4, min_column_width=190):
        elements.name_card(best.title, best.text, explained=best.explained)
        for figure in figures:
            elements.card(figure.title, escaped(figure.text), explained=figure.explained)


def table(link: Link, found: pd.DataFrame, focus: str) -> None:
    """`dashboard.prepared.break_even_plan.rows` with what they are about."""
    st.markdown("#### In steps, time and money")
    elements.note(plan.words(link, focus))
    elements.table(
        found,
        {
            "strategy": st.column_config.TextColumn("Strategy", pinned=True),
            **BOUND_TITLE,
            **{
                name: st.column_config.TextColumn(title, alignment="right")
                for name, title in plan.TITLES.items()
            },
        },
        key="break-even-table",
        alt=f"Break-even of every strategy on {focus} in steps, time and money, and the cost of a day",
    )
