"""Break-even: total time against steps, strategy by strategy, and what a plan of steps and restarts costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from dashboard import shaping, theme
from dashboard.charts import break_even as charts
from dashboard.data import filters_of, read_cases
from dashboard.links import Link
from dashboard.shaping import asides, with_caches, with_strategies
from dashboard.snapshots import Snapshot, remembered
from dashboard.views import break_even_history, break_even_plan, controls, elements
from dashboard.views.shell import View, caches, focused, strategies
from db.metrics.case_modes import mode_options
from db.metrics.mode_choice import ModeOption, lower_envelope
from db.strategies import EAGER

_SCALE_WORDS = {"linear": "Linear", "log": "Log"}


@dataclass(frozen=True)
class Seen:
    """What the page is drawn from: the options of the workload in focus and its curves, if it has any."""

    options: list[ModeOption]
    curves: charts.Curves | None
    finding: str
    plan: pd.DataFrame
    done_first: str
    beside: list[str]
    every_workload: pd.DataFrame


@remembered
def _workloads(snapshot: Snapshot, link: Link) -> tuple[list[str], frozenset[str]]:
    """The workloads to choose from, and the cache states that were measured."""
    cases, everything = _cases(snapshot, link), read_cases(snapshot, filters_of(link))
    return sorted(set(cases["workload_label"])), frozenset(map(str, everything["cache"]))


def _cases(snapshot: Snapshot, link: Link) -> pd.DataFrame:
    return with_caches(with_strategies(read_cases(snapshot, filters_of(link)), link.strategy), link.cache)


@remembered
def _seen(snapshot: Snapshot, link: Link, focus: str) -> Seen:
    cases = _cases(snapshot, link)
    mine = cases[cases["workload_label"] == focus]
    options, left_out = mode_options(mine)
    no_line = [f"{case.workload} with {case.strategy} has no line: {case.reason}" for case in left_out]
    columns = (mine[name].tolist() for name in ("strategy", "break_even", "break_even_steps"))
    steps = {strategy: int(count) for strategy, kind, count in zip(*columns, strict=True) if kind == "steps"}
    drawable = len(options) > 1
    return Seen(
        options=options,
        curves=charts.curves(options, steps, steps=link.steps, restarts=0, log=link.scale == "log")
        if drawable
        else None,
        finding=charts.finding(mine, focus),
        plan=break_even_plan.rows(link, mine, options),
        done_first=_done_first(options) if drawable else "",
        beside=list(dict.fromkeys([*_reasons(mine), *no_line, *map(str, asides(mine))])),
        every_workload=_every_workload(cases),
    )


def draw(view: View) -> Link:
    """The page of one workload; the link it returns has that in focus."""
    workloads, cache_states = _workloads(view.snapshot, view.link)
    _filters(view, workloads, cache_states)
    if not workloads:
        elements.nothing_to_show("No case fits these filters.", next_step="Widen them in the sidebar.")
        return view.link
    focus = focused(view.link, workloads)
    seen = _seen(view.snapshot, view.link, focus)
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


def _curves(link: Link, seen: Seen, focus: str) -> None:
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
        if found.beyond:
            elements.note(
                f"Crossing beyond the right edge: {', '.join(found.beyond)}. The log scale shows it."
            )
        if link.steps > found.last_step:
            elements.note(
                f"{link.steps:,} steps lie beyond the right edge; every crossing is passed by then."
            )
        elements.note(seen.done_first)


def _done_first(options: list[ModeOption]) -> str:
    parts = []
    for part in lower_envelope(options):
        until = "on" if part.last_steps is None else f"to {part.last_steps:,}"
        parts.append(f"{part.strategy} from {part.first_steps:,} {until}")
    return f"Done first, by steps per process: {'; '.join(parts)}."


def _reasons(cases: pd.DataFrame) -> list[str]:
    """Why a case has no break-even."""
    return [
        f"{case['workload_label']} with {case['strategy']}: break-even is {case['break_even']}, "
        f"{case['break_even_reason']}"
        for case in shaping.row_dicts(
            cases[["workload_label", "strategy", "break_even", "break_even_reason"]]
        )
        if case["strategy"] != EAGER.name and case["break_even"] != "steps"
    ]


def _every_workload(cases: pd.DataFrame) -> pd.DataFrame:
    """Break-even in words, a row per workload and a column per strategy; no rows for a single workload."""
    rows: dict[str, dict[str, str]] = {}
    told = cases[["workload_label", "strategy", "break_even", "break_even_steps"]]
    for case in shaping.row_dicts(told):
        if case["strategy"] == EAGER.name:
            continue
        words = break_even_plan.steps_words(case)
        rows.setdefault(case["workload_label"], {"workload": case["workload_label"]})[case["strategy"]] = (
            words
        )
    return pd.DataFrame([rows[name] for name in sorted(rows)]) if len(rows) > 1 else pd.DataFrame()


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
