"""How break-even moved from build to build, as a chart where it is a number and in words where it is none."""

from __future__ import annotations

import streamlit as st

from dashboard.links import Link
from dashboard.prepared.break_even_history import history
from dashboard.snapshots import Snapshot
from dashboard.views import elements


def draw(snapshot: Snapshot, link: Link, focus: str) -> None:
    """Nothing where only one build was measured: a history needs two."""
    found = history(snapshot, link, focus)
    if len(found.table) < 2:
        return
    with st.container(border=True):
        elements.finding(
            found.chart.finding, "Steps until compiling has paid off, build by build. Band: 95 % interval."
        )
        if found.chart.spec is not None:
            elements.chart(
                found.chart.spec,
                found.chart.frames,
                key="break-even-history",
                alt=f"Break-even of {focus} over builds, one line per strategy",
            )
        elements.notes(found.chart.notes)
        text = st.column_config.TextColumn
        elements.table(
            found.table,
            {
                "build": text("Build", pinned=True),
                **{name: text(name, alignment="right") for name in found.strategies},
            },
            key="break-even-history-table",
            alt=f"Break-even of {focus} with every build, never and unknown included",
        )
