"""Cold start: where the time from process start to the first result goes, strategy by strategy."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.links.links import Link
from dashboard.pages.cold_start import content
from dashboard.render import controls, elements
from dashboard.render.shell import View, caches, strategies
from db.wording.marks import BOUND_TITLE


def draw(view: View) -> Link:
    """The page of one workload, or of all where the link names none."""
    workloads, cache_states = content.workloads(view.snapshot, view.link)
    _filters(view, workloads, cache_states)
    if view.link.focus not in {None, *workloads}:
        elements.note(f"{view.link.focus} has no case under these filters; showing all workloads.")
    seen = content.page_content(view.snapshot, view.link)
    if seen.chart.spec is None:
        elements.nothing_to_show(
            "No trial under these filters told its cold start.", next_step="Widen them in the sidebar."
        )
        return view.link
    with st.grid(4, min_column_width=150):
        for title, value, explained in seen.figures:
            elements.card(title, value, explained=explained)
    with st.container(border=True):
        elements.finding(
            seen.chart.finding,
            "Medians over trials, phase by phase, from spawning the process to its first result.",
        )
        elements.chart(
            seen.chart.spec,
            seen.chart.frames,
            key="cold-start-bars",
            alt="Phases from process start to first result, one stacked bar per case",
        )
        elements.notes([f"{note} Choose a workload to see its own." for note in seen.chart.notes])
    _table(seen.cases)
    elements.listed("Beside the numbers", seen.beside, icon=":material/report:")
    return view.link


def _filters(view: View, workloads: list[str], cache_states: frozenset[str]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=260):
            controls.one_of("focus", "Workload", {"": "All workloads", **{name: name for name in workloads}})
        caches(view, cache_states)
    strategies(view)


def _table(table: pd.DataFrame) -> None:
    elements.table(
        table,
        {
            "workload": st.column_config.TextColumn("Workload", pinned=True),
            "strategy": "Strategy",
            **BOUND_TITLE,
            "cache": "Cache state",
            **{
                name: st.column_config.TextColumn(title, alignment="right")
                for name, title in content.TITLES.items()
            },
        },
        key="cold-start-table",
        alt="Time to first result, compile cost, graphs, graph breaks and recompiles of every case",
    )
