"""Break-even: total time against steps, strategy by strategy, and what a plan of steps and restarts costs."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from dashboard import theme
from dashboard.charts import break_even as charts
from dashboard.links import Link
from dashboard.prepared import break_even as prepared
from dashboard.views import break_even_history, break_even_plan, controls, elements
from dashboard.views.shell import View, caches, focused, strategies

_SCALE_WORDS = {"linear": "Linear", "log": "Log"}


def draw(view: View) -> Link:
    """The page of one workload; the link it returns has that in focus."""
    workloads, cache_states = prepared.workloads(view.snapshot, view.link)
    _filters(view, workloads, cache_states)
    if not workloads:
        elements.nothing_to_show("No case fits these filters.", next_step="Widen them in the sidebar.")
        return view.link
    focus = focused(view.link, workloads)
    seen = prepared.seen(view.snapshot, view.link, focus)
    break_even_plan.cards(view.link, seen.options)
    _curves(view.link, seen, focus)
    break_even_plan.table(view.link, seen.plan, focus)
    elements.listed("Beside the numbers", seen.beside, icon=":material/report:")
    break_even_history.draw(view.snapshot, replace(view.link, focus=None), focus)
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


def _curves(link: Link, seen: prepared.Seen, focus: str) -> None:
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
        elements.notes(prepared.right_of_the_edge(found, link.steps))
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
