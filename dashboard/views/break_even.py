"""Break-even: total time against steps, strategy by strategy, and what a plan of steps and restarts costs."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from dashboard import shaping, theme
from dashboard.charts import break_even as charts
from dashboard.data import filters_of, read_cases
from dashboard.links import Link
from dashboard.shaping import asides, with_strategies
from dashboard.views import break_even_plan, controls, elements
from dashboard.views.shell import View, focused, strategies
from db.metrics.case_modes import mode_options
from db.metrics.mode_choice import ModeOption, lower_envelope
from db.records import CacheState
from db.strategies import EAGER

_SCALE_WORDS = {"linear": "Linear", "log": "Log"}
_CACHES = {str(state): str(state) for state in CacheState if state is not CacheState.NONE}


def draw(view: View) -> Link:
    cases = with_strategies(read_cases(view.snapshot, filters_of(view.link)), view.link.strategy)
    if view.link.cache:
        cases = cases[cases["cache"].isin([*view.link.cache, CacheState.NONE.value])]
    workloads = sorted(set(cases["workload_label"]))
    _filters(view, workloads, cases)
    if cases.empty:
        elements.nothing_to_show("No case fits these filters.", next_step="Widen them in the sidebar.")
        return view.link
    focus = focused(view.link, workloads)
    chosen = cases[cases["workload_label"] == focus]
    options, left_out = mode_options(chosen)
    break_even_plan.cards(view.link, options)
    _curves(view, chosen, options, focus)
    break_even_plan.table(view.link, chosen, options, focus)
    no_line = [f"{case.workload} with {case.strategy} has no line: {case.reason}" for case in left_out]
    elements.listed(
        "Beside the numbers",
        list(dict.fromkeys([*_reasons(chosen), *no_line, *map(str, asides(chosen))])),
        icon=":material/report:",
    )
    _every_workload(cases)
    return replace(view.link, focus=focus)


def _filters(view: View, workloads: list[str], cases: pd.DataFrame) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=260):
            controls.one_of("focus", "Workload", {name: name for name in workloads})
        strategies(view)
        if cases["cache"].nunique() > 2 or view.link.cache:
            controls.pills("cache", "Cache state", _CACHES)
        controls.segments("scale", "Scale", _SCALE_WORDS)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=340):
            controls.step_slider(
                "steps",
                "Steps per process",
                "{:,}".format,
                low=1,
                high=100_000_000,
                help_="How often one process runs the compiled code.",
            )
        with st.container(width=240):
            controls.step_slider(
                "restarts",
                "Restarts per day",
                "{:,}".format,
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


def _curves(view: View, cases: pd.DataFrame, options: list[ModeOption], focus: str) -> None:
    with st.container(border=True):
        elements.finding(
            charts.finding(cases, focus),
            "Total time of a process, compile cost included. Where a line crosses eager, compiling has "
            "paid off. Band: 95 % interval. The broad shade follows the strategy that is done first.",
        )
        if len(options) < 2:
            elements.nothing_to_show(
                "No compiled case of this workload has both a speedup and a compile cost."
            )
            return
        link, stated = view.link, cases[cases["break_even"] == "steps"]
        found = charts.curves(
            options,
            dict(zip(stated["strategy"], stated["break_even_steps"].astype(int), strict=True)),
            steps=link.steps,
            restarts=0,
            log=link.scale == "log",
        )
        elements.chart(
            charts.spec(
                tuple(theme.ordered(o.strategy for o in options)), found.unit, link.scale, found.last_step
            ),
            {
                "main": found.lines,
                "envelope": found.envelope,
                "crossings": found.crossings,
                "wanted": charts.wanted(link.steps, found.last_step),
            },
            key="break-even-curves",
            alt=f"Total time against steps per process on {focus}, one line per strategy, crossings marked",
        )
        _below(found, options, link.steps)


def _below(found: charts.Curves, options: list[ModeOption], steps: int) -> None:
    if found.beyond:
        elements.note(f"Crossing beyond the right edge: {', '.join(found.beyond)}. The log scale shows it.")
    if steps > found.last_step:
        elements.note(f"{steps:,} steps lie beyond the right edge; every crossing shown is passed by then.")
    parts = []
    for part in lower_envelope(options):
        until = "on" if part.last_steps is None else f"to {part.last_steps:,}"
        parts.append(f"{part.strategy} from {part.first_steps:,} {until}")
    elements.note(f"Done first, by steps per process: {'; '.join(parts)}.")


def _reasons(cases: pd.DataFrame) -> list[str]:
    """Why a case has no break-even."""
    return [
        f"{case['workload_label']} with {case['strategy']}: break-even is {case['break_even']}, "
        f"{case['break_even_reason']}"
        for case in shaping.row_dicts(cases)
        if case["strategy"] != EAGER.name and case["break_even"] != "steps"
    ]


def _every_workload(cases: pd.DataFrame) -> None:
    compiled = cases[cases["strategy"] != "eager"]
    if compiled["workload_label"].nunique() < 2:
        return
    compiled = compiled.assign(
        words=[break_even_plan.steps_words(case) for case in shaping.row_dicts(compiled)]
    )
    wide = compiled.pivot_table(index="workload_label", columns="strategy", values="words", aggfunc="first")
    strategies = theme.ordered(wide.columns)
    st.markdown("#### Break-even of every workload")
    elements.table(
        wide[strategies].reset_index(),
        {
            "workload_label": st.column_config.TextColumn("Workload", pinned=True),
            **{name: st.column_config.TextColumn(name, alignment="right") for name in strategies},
        },
        key="break-even-all",
        alt="Break-even steps of every workload with every strategy",
    )
