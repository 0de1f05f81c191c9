"""The tables of the Upgrade page: what the builds differ in, compile cost and break-even, what passes."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.render import elements, verdict_words
from db.judge.vocabulary import Metric
from db.wording import units
from db.wording.marks import BOUND_TITLE
from db.wording.metrics import METRICS


def environment(parts: pd.DataFrame) -> None:
    """What differs between the builds: columns `part`, `base`, `head`."""
    with elements.part("What differs between the builds"):
        if parts.empty:
            elements.note("No part of the builds that is stored differs.")
            return
        elements.table(
            parts,
            {
                "part": st.column_config.TextColumn("Part", pinned=True),
                "base": "Base",
                "head": "Head",
            },
            key="upgrade-environment",
            alt="Parts of the build that differ between base and head",
        )


def shift(table: pd.DataFrame) -> None:
    """Compile cost and break-even before and after, as `dashboard.pages.upgrade.content.shift_table`
    returns them."""
    st.markdown("#### Compile cost and break-even")
    if table.empty:
        elements.note("No compiled case has a compile cost on both sides.")
        return
    text = st.column_config.TextColumn
    columns: dict[str, object] = {
        "workload": text("Workload", pinned=True),
        "strategy": "Strategy",
        **BOUND_TITLE,
    }
    for metric in (Metric.COMPILE_COST, Metric.BREAK_EVEN):
        columns |= {
            f"{metric.value}_from_to": text(METRICS[metric].name, alignment="right"),
            f"{metric.value}_change": text("Change", alignment="right"),
            f"{metric.value}_verdict": text("Verdict"),
        }
    elements.table(
        table,
        columns,
        key="upgrade-shift",
        alt="Compile cost and break-even of every compiled case before and after, with verdicts",
    )


def counts(changed: pd.DataFrame, failing: list[str], *, compared: bool) -> None:
    """What passes no more or again and counts that `changed`
    (`dashboard.pages.upgrade.content.count_changes`).

    `failing` are cases that fail on both sides. With nothing `compared`, nothing is known of either.
    """
    st.markdown("#### What passes, graph breaks, recompiles")
    if not compared:
        elements.note("Nothing was compared, so nothing is known of what passes, breaks or recompiles.")
    elif changed.empty:
        elements.note(
            "Every compared case passes or fails as before, with as many graph breaks and recompiles."
        )
    else:
        text = st.column_config.TextColumn
        elements.table(
            changed,
            {
                "workload": text("Workload", pinned=True),
                "strategy": "Strategy",
                **BOUND_TITLE,
                "metric": "Figure",
                "base": text("Base", alignment="right"),
                "head": text("Head", alignment="right"),
                "verdict": "Verdict",
                "reason": text("Why", width="large"),
            },
            key="upgrade-counts",
            alt="Cases that pass no more or again, and changed graph breaks and recompiles",
        )
    elements.listed("Fails on both sides", failing, icon=":material/report:")


def left_out(title: str, lines: list[str], table: pd.DataFrame) -> None:
    """Who was not compared and why: `lines`, which name the first of each reason, and folded the `table` of
    all (`dashboard.pages.upgrade.content.left_out_table`).
    """
    elements.listed(title, lines, icon=":material/block:")
    if len(table) <= verdict_words.NAMED_CASES:
        return
    with st.expander(f"All {units.count(len(table))} cases left out", icon=":material/block:"):
        elements.table(
            table,
            {
                "workload": st.column_config.TextColumn("Workload", pinned=True),
                "strategy": "Strategy",
                "verdict": "Verdict",
                "reason": st.column_config.TextColumn("Why", width="large"),
            },
            key="left-out",
            alt="Every case that was left out of the comparison, with the reason",
        )
