"""Break-even: total time against steps, what a plan of steps and restarts costs, and "never" said as it is."""

from __future__ import annotations

from decimal import Decimal

import pandas as pd
import streamlit as st

from dashboard import theme
from dashboard.charts import break_even as charts
from dashboard.data import filters_of, read_cases
from dashboard.shaping import asides, with_strategies
from dashboard.views import controls, elements
from dashboard.views.shell import View, strategies
from db import units
from db.metrics.break_even import price
from db.metrics.case_modes import mode_options
from db.metrics.mode_choice import ModeOption, lower_envelope
from db.metrics.quantities import nanoseconds
from db.records import CacheState

_SCALE_WORDS = {"linear": "Linear", "log": "Log"}
_CACHES = {str(state): str(state) for state in CacheState if state is not CacheState.NONE}


def draw(view: View) -> None:
    cases = with_strategies(read_cases(view.snapshot, filters_of(view.link)), view.link.strategy)
    if view.link.cache:
        cases = cases[cases["cache"].isin([*view.link.cache, CacheState.NONE.value])]
    workloads = sorted(set(cases["workload_label"]))
    _filters(view, workloads, cases)
    if cases.empty:
        elements.nothing_to_show("No case fits these filters.", next_step="Widen them in the sidebar.")
        return
    focus = view.link.focus if view.link.focus in workloads else workloads[0]
    if view.link.focus not in {None, *workloads}:
        elements.note(f"{view.link.focus} has no case under these filters; showing {focus}.")
    chosen = cases[cases["workload_label"] == focus]
    options, left_out = mode_options(chosen)
    _curves(view, chosen, options, focus)
    _table(view, chosen, options, focus)
    reasons = [f"{case.workload} with {case.strategy} has no line: {case.reason}" for case in left_out]
    elements.listed("Beside the numbers", [*reasons, *map(str, asides(chosen))], icon=":material/report:")
    _every_workload(cases)


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
            "Total time of a process with its compile cost. Where a line crosses eager, compiling has paid off. "
            "Band: 95 % interval. The broad shade follows the strategy that is done first.",
        )
        if len(options) < 2:
            elements.nothing_to_show(
                "No compiled case of this workload has both a speedup and a compile cost."
            )
            return
        link, stated = view.link, cases[cases["break_even"] == "steps"]
        found = charts.curves(
            options,
            {row.strategy: int(row.break_even_steps) for row in stated.itertuples()},
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


def _table(view: View, cases: pd.DataFrame, options: list[ModeOption], focus: str) -> None:
    """What the plan of the sliders costs per day, strategy by strategy."""
    link = view.link
    by_name = {option.strategy: option for option in options}
    rate = Decimal(str(link.price))
    rows = []
    for row in sorted(
        cases.itertuples(), key=lambda case: theme.ordered([*by_name, case.strategy]).index(case.strategy)
    ):
        option = by_name.get(row.strategy)
        total = option.total(link.steps, link.restarts) if option else None
        saved = by_name["eager"].total(link.steps, link.restarts) - total if total else None
        until = row.break_even_time_ns
        rows.append(
            {
                "strategy": row.strategy,
                "steps": _steps_words(row),
                "interval": _interval_words(row),
                "time": units.duration(until),
                "money": units.MISSING
                if pd.isna(until)
                else units.money(price(nanoseconds(float(until)), rate)),
                "cost": units.duration(row.compile_cost_ns),
                "day": units.duration(None if total is None else float(total.value)),
                "day_money": units.MISSING if total is None else units.money(price(total, rate)),
                "saved": units.MISSING if saved is None else units.duration(float(saved.value)),
                "saved_money": units.MISSING
                if saved is None
                else units.money(Decimal(float(saved.value)) / Decimal(3_600_000_000_000) * rate),
            }
        )
    st.markdown("#### In steps, time and money")
    elements.note(
        f"{focus}: {link.restarts + 1:,} process{'es' if link.restarts else ''} a day of {link.steps:,} steps each, "
        f"at ${link.price:g} per device-hour. A negative saving is a loss."
    )
    elements.table(
        pd.DataFrame(rows),
        {
            "strategy": st.column_config.TextColumn("Strategy", pinned=True),
            **{
                name: st.column_config.TextColumn(title, alignment="right")
                for name, title in {
                    "steps": "Break-even",
                    "interval": "95 % interval",
                    "time": "Run time until then",
                    "money": "Money until then",
                    "cost": "Compile cost",
                    "day": "Time per day",
                    "day_money": "Money per day",
                    "saved": "Saved per day",
                    "saved_money": "Money saved per day",
                }.items()
            },
        },
        key="break-even-table",
        alt=f"Break-even of every strategy on {focus} in steps, time and money, and the cost of a day",
    )


def _steps_words(row: object) -> str:
    kind = str(row.break_even)  # type: ignore[attr-defined]
    if kind == "steps":
        return units.steps(int(row.break_even_steps))  # type: ignore[attr-defined]
    reason = row.break_even_reason  # type: ignore[attr-defined]
    return f"{kind}: {reason}" if isinstance(reason, str) else kind


def _interval_words(row: object) -> str:
    kind, low, high = row.break_even_interval, row.break_even_low, row.break_even_high  # type: ignore[attr-defined]
    if kind == "bounded":
        return units.interval(int(low), int(high), units.count)
    if kind == "open":
        return f"from {units.count(int(low))} to never"
    return units.NEVER if kind == "never" else units.MISSING


def _every_workload(cases: pd.DataFrame) -> None:
    compiled = cases[cases["strategy"] != "eager"]
    if compiled["workload_label"].nunique() < 2:
        return
    compiled = compiled.assign(words=[_steps_words(row) for row in compiled.itertuples()])
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
