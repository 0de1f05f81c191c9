"""Break-even: total time against steps, strategy by strategy, and what a plan of steps and restarts costs."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from dashboard.links.links import Link
from dashboard.pages.break_even import charts, content
from dashboard.pages.break_even.content import history
from dashboard.read.snapshots import Snapshot
from dashboard.render import controls, elements, theme
from dashboard.render.foreign_text import escaped
from dashboard.render.shell import View, caches, focused, strategies
from db.metrics.mode_choice import ModeOption
from db.wording.marks import BOUND_TITLE

# What a plan of steps per process and restarts per day costs: cards and a table in steps, time and money.


def cards(link: Link, options: list[ModeOption]) -> None:
    """The plan of the sliders in four figures."""
    if len(options) < 2:
        return
    best, figures = content.figures(link, options)
    with st.grid(4, min_column_width=190):
        elements.name_card(best.title, best.text, explained=best.explained)
        for figure in figures:
            elements.card(figure.title, escaped(figure.text), explained=figure.explained)


def table(link: Link, found: pd.DataFrame, focus: str) -> None:
    """`dashboard.pages.break_even.content.rows` with what they are about."""
    st.markdown("#### In steps, time and money")
    elements.note(content.words(link, focus))
    elements.table(
        found,
        {
            "strategy": st.column_config.TextColumn("Strategy", pinned=True),
            **BOUND_TITLE,
            **{
                name: st.column_config.TextColumn(title, alignment="right")
                for name, title in content.TITLES.items()
            },
        },
        key="break-even-table",
        alt=f"Break-even of every strategy on {focus} in steps, time and money, and the cost of a day",
    )


# How break-even moved from build to build, as a chart where it is a number and in words where it is none.


def draw_history(snapshot: Snapshot, link: Link, focus: str) -> None:
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


_SCALE_WORDS = {"linear": "Linear", "log": "Log"}


def draw(view: View) -> Link:
    """The page of one workload; the link it returns has that in focus."""
    workloads, cache_states = content.workloads(view.snapshot, view.link)
    _filters(view, workloads, cache_states)
    if not workloads:
        elements.nothing_to_show("No case fits these filters.", next_step="Widen them in the sidebar.")
        return view.link
    focus = focused(view.link, workloads)
    seen = content.page_content(view.snapshot, view.link, focus)
    cards(view.link, seen.options)
    _curves(view.link, seen, focus)
    table(view.link, seen.plan, focus)
    elements.listed("Beside the numbers", seen.beside, icon=":material/report:")
    draw_history(view.snapshot, replace(view.link, focus=None), focus)
    _all(seen.every_workload)
    return replace(view.link, focus=focus)


def _filters(view: View, workloads: list[str], cache_states: frozenset[str]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=260):
            controls.one_of("focus", "Workload", {name: name for name in workloads})
        controls.segments("scale", "Scale", _SCALE_WORDS)
        caches(view, cache_states)
    strategies(view)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=340):
            controls.step_slider(
                "steps",
                "Steps per process",
                low=1,
                high=100_000_000,
                help_="How often one process runs the compiled code.",
            )
        with st.container(width=240):
            controls.step_slider(
                "restarts",
                "Restarts per day",
                low=0,
                high=10_000,
                help_="Every restart compiles again. R restarts are R + 1 processes a day.",
            )
        with st.container(width=200):
            controls.number(
                "price",
                "Price per device-hour ($)",
                low=0.0,
                high=10_000.0,
                step=0.5,
                help_="What an hour of this machine costs you.",
            )


def _curves(link: Link, seen: content.PageContent, focus: str) -> None:
    found = seen.curves
    with st.container(border=True):
        elements.finding(
            seen.finding,
            "Total time of a process, compile cost included. Where a line crosses eager, compiling has "
            "paid off. Band: 95 % interval. The broad shade follows the strategy that is done first.",
        )
        if found is None:
            elements.nothing_to_show(
                "No compiled case of this workload has both a speedup and a compile cost."
            )
            return
        shown = tuple(theme.ordered(option.strategy for option in seen.options))
        elements.chart(
            charts.spec(shown, found.unit, link.scale, found.last_step),
            found.frames,
            key="break-even-curves",
            alt=f"Total time against steps per process on {focus}, one line per strategy, crossings marked",
        )
        elements.notes(content.right_of_the_edge(found, link.steps))
        elements.note(seen.done_first)


def _all(table: pd.DataFrame) -> None:
    if table.empty:
        return
    names = theme.ordered(name for name in table.columns if name != "workload")
    st.markdown("#### Break-even of every workload")
    elements.table(
        table,
        {
            "workload": st.column_config.TextColumn("Workload", pinned=True),
            **{name: st.column_config.TextColumn(name, alignment="right") for name in names},
        },
        key="break-even-all",
        alt="Break-even steps of every workload with every strategy",
    )
