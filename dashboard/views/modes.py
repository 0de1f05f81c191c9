"""Modes: which strategy suits which workload, for latency, for a number of steps, or for memory."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import theme
from dashboard.charts import modes as charts
from dashboard.data import filters_of, read_cases
from dashboard.links import Link, Page
from dashboard.shaping import asides, not_applicable, with_strategies
from dashboard.views import controls, elements
from dashboard.views.shell import View, strategies
from db import units
from db.metrics.case_modes import choose_modes

_GOALS = {"latency": "Latency", "steps": "A number of steps", "memory": "Memory"}


def draw(view: View) -> Link:
    cases = with_strategies(read_cases(view.snapshot, filters_of(view.link)), view.link.strategy)
    strategies(view)
    if cases.empty:
        elements.nothing_to_show("No case fits these filters.", next_step="Widen them in the sidebar.")
        return view.link
    _heat_map(view, cases)
    _best(view, cases)
    _pareto(cases)
    elements.listed("Beside the numbers", [str(aside) for aside in asides(cases)], icon=":material/report:")
    return view.link


def _heat_map(view: View, cases: pd.DataFrame) -> None:
    reasons = not_applicable(cases, set(view.link.strategy))
    workloads = sorted(set(cases["workload_label"]))
    cells = charts.cells(cases, reasons, workloads)
    with st.container(border=True):
        elements.finding(
            _heat_map_finding(cases),
            "Speedup over eager: blue is faster, orange slower, grey has no number. Click a cell.",
        )
        if cells.empty:
            elements.nothing_to_show(
                "Only eager was measured here.", next_step="Measure a compiled strategy."
            )
            return
        strategies = tuple(theme.ordered(cells["strategy"]))
        elements.chart(
            charts.heat_map(tuple(workloads), strategies),
            {"main": cells},
            key="modes-map",
            alt="Speedup over eager of every workload with every strategy, as numbers in cells",
            on_select=_open_trend,
        )
        for strategy, reason in reasons.items():
            elements.note(f"n/a: {strategy} is not applicable on this device. {reason}.")


def _heat_map_finding(cases: pd.DataFrame) -> str:
    compiled = cases[(cases["strategy"] != "eager") & cases["speedup"].notna()]
    if compiled.empty:
        return "No compiled case has a speedup"
    best = compiled.sort_values("speedup").groupby("workload_id").tail(1)
    wins = best[best["speedup"] > 1]
    if wins.empty:
        return "Eager is the fastest on every workload"
    counts = wins["strategy"].value_counts()
    return f"{counts.index[0]} is the fastest on {counts.iloc[0]} of {len(best)} workloads"


def _open_trend() -> None:
    mark = elements.picked("modes-map")
    if mark:
        controls.go(Page.TRENDS, focus=str(mark["workload"]), strategy=(str(mark["strategy"]),))


def _best(view: View, cases: pd.DataFrame) -> None:
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            controls.segments("goal", "Best strategy for", _GOALS)
            if view.link.goal == "steps":
                with st.container(width=320):
                    controls.step_slider(
                        "steps",
                        "Steps per process",
                        "{:,}".format,
                        low=1,
                        high=100_000_000,
                        help_="How often the compiled code runs in one process. Compile cost is paid once.",
                    )
        table, columns = _best_table(view, cases)
        if table.empty:
            elements.nothing_to_show("No case has the figures that this choice needs.")
            return
        elements.table(
            table,
            columns,
            key="modes-best",
            alt=f"Best strategy of every workload for {_GOALS[view.link.goal].lower()}",
        )


def _best_table(view: View, cases: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, object]]:
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    head: dict[str, object] = {"workload": text("Workload", pinned=True), "strategy": "Best strategy"}
    if view.link.goal == "steps":
        chosen = choose_modes(cases, steps=view.link.steps)
        labels = dict(zip(cases["workload_id"], cases["workload_label"], strict=True))
        table = pd.DataFrame(
            {
                "workload": chosen["workload_id"].map(labels),
                "strategy": chosen["strategy"],
                "total": [units.duration(value) for value in chosen["total_ns"]],
                "eager": [units.duration(value) for value in chosen["eager_total_ns"]],
                "saved": [units.duration(value) for value in chosen["saved_ns"]],
                "options": chosen["options"],
            }
        )
        right = {
            name: text(title, alignment="right")
            for name, title in {
                "total": "Total time",
                "eager": "Eager total",
                "saved": "Saved against eager",
            }.items()
        }
        return table, {**head, **right, "options": number("Strategies compared")}
    column, title, say = {
        "latency": ("latency_ns", "Latency", units.duration),
        "memory": ("peak_bytes", "Peak memory", units.size),
    }[view.link.goal]
    usable = cases[cases[column].notna() & (cases["status"] != "failed")]
    if usable.empty:
        return pd.DataFrame(), {}
    best = usable.loc[usable.groupby("workload_id", sort=False)[column].idxmin()].sort_values(
        "workload_label"
    )
    other = best["speedup"] if view.link.goal == "latency" else best["memory_ratio"]
    table = pd.DataFrame(
        {
            "workload": best["workload_label"],
            "strategy": best["strategy"],
            "value": [say(value) for value in best[column]],
            "ratio": [units.ratio(value) for value in other],
            "options": [int((usable["workload_id"] == key).sum()) for key in best["workload_id"]],
        }
    )
    ratio = "Speedup over eager" if view.link.goal == "latency" else "Eager peak / this peak"
    return table, {
        **head,
        "value": text(title, alignment="right"),
        "ratio": text(ratio, alignment="right"),
        "options": number("Strategies compared"),
    }


def _pareto(cases: pd.DataFrame) -> None:
    rows = charts.front(cases)
    if rows.empty:
        return
    best = rows[rows["best"]]
    on_front = best["strategy"].value_counts()
    workloads = rows["workload"].nunique()
    with st.container(border=True):
        elements.finding(
            f"{on_front.index[0]} is worth its compile cost on {on_front.iloc[0]} of {workloads} workloads",
            "Up and to the left is better. Each dashed line is the front of one workload: its strategies "
            "that no cheaper one outruns.",
        )
        log = bool((rows["cost_low"] > 0).all())
        elements.chart(
            charts.scatter(tuple(theme.ordered(rows["strategy"])), log=log),
            {"main": rows, "front": best, "ends": charts.ends(rows, log=log)},
            key="modes-pareto",
            alt="Compile cost against speedup of every compiled case, with the Pareto front of each workload",
        )
