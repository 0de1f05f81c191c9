"""Modes: which strategy suits which workload, for latency, for a number of steps, or for memory."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.charts.style import PreparedChart
from dashboard.links.links import Link, Page
from dashboard.pages.modes import charts, content
from dashboard.pages.modes.content import BEST_COLUMNS, GOALS
from dashboard.render import controls, elements, theme
from dashboard.render.published_lines import PUBLISHED_TITLE
from dashboard.render.shell import View, strategies
from db.wording.marks import BOUND_TITLE


def draw(view: View) -> Link:
    """The page for the goal that the link names."""
    strategies(view)
    seen = content.page_content(view.snapshot, view.link)
    if seen is None:
        elements.nothing_to_show("No case fits these filters.", next_step="Widen them in the sidebar.")
        return view.link
    _heat_map(seen)
    _best(view, seen.best)
    _pareto(seen.front)
    elements.listed("Beside the numbers", seen.beside, icon=":material/report:")
    elements.listed(PUBLISHED_TITLE, seen.published, icon=":material/public:")
    return view.link


def _heat_map(seen: content.PageContent) -> None:
    cells = seen.cells
    with st.container(border=True):
        elements.finding(
            seen.finding,
            "Speedup over eager: blue is faster, orange slower, grey has no number. Click a cell.",
        )
        if cells.empty:
            elements.nothing_to_show(
                "Only eager was measured here.", next_step="Measure a compiled strategy."
            )
            return
        elements.chart(
            charts.spec(tuple(dict.fromkeys(cells["workload"])), tuple(theme.ordered(cells["strategy"]))),
            {"main": cells},
            key="modes-map",
            alt="Speedup over eager of every workload with every strategy, as numbers in cells",
            on_select=_open_trend,
        )
        elements.notes(
            [
                f"n/a: {strategy} is not applicable on this device. {reason}."
                for strategy, reason in seen.without_meaning.items()
            ]
        )


def _open_trend() -> None:
    mark = elements.picked("modes-map")
    if mark:
        controls.go(Page.TRENDS, focus=str(mark["workload"]), strategy=(str(mark["strategy"]),))


def _best(view: View, table: pd.DataFrame) -> None:
    goal = view.link.goal
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            controls.segments("goal", "Best strategy for", GOALS)
            if goal == "steps":
                with st.container(width=320):
                    controls.step_slider(
                        "steps",
                        "Steps per process",
                        low=1,
                        high=100_000_000,
                        help_="How often the compiled code runs in one process. Compile cost is paid once.",
                    )
        if table.empty:
            elements.nothing_to_show("No case has the figures that this choice needs.")
            return
        elements.table(
            table,
            {
                "workload": st.column_config.TextColumn("Workload", pinned=True),
                "strategy": "Best strategy",
                **{
                    name: st.column_config.TextColumn(title, alignment="right")
                    for name, title in BEST_COLUMNS[goal].items()
                },
                **BOUND_TITLE,
                "options": st.column_config.NumberColumn("Strategies compared"),
            },
            key="modes-best",
            alt=f"Best strategy of every workload for {GOALS[goal].lower()}",
        )


def _pareto(front: PreparedChart) -> None:
    if front.spec is None:
        return
    with st.container(border=True):
        elements.finding(
            front.finding,
            "Up and to the left is better. Each dashed line is the front of one workload: its strategies "
            "that are faster than eager and that no cheaper one outruns.",
        )
        elements.chart(
            front.spec,
            front.frames,
            key="modes-pareto",
            alt="Compile cost against speedup of every compiled case, with the Pareto front of each workload",
        )
