"""Cold start: where the time from process start to the first result goes, strategy by strategy."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import shaping, theme
from dashboard.charts import cold_start as charts
from dashboard.data import filters_of, read_cases, read_cold_start
from dashboard.links import Link
from dashboard.shaping import asides, with_strategies
from dashboard.views import controls, elements
from dashboard.views.shell import View, strategies
from db import units
from db.records import CacheState
from db.strategies import sort_key

_CACHES = {str(state): str(state) for state in CacheState if state is not CacheState.NONE}


def draw(view: View) -> Link:
    filters = filters_of(view.link)
    cases = with_strategies(read_cases(view.snapshot, filters), view.link.strategy)
    workloads = sorted(set(cases["workload_label"]))
    _filters(view, workloads, cases)
    labels = dict(zip(cases["workload_id"], cases["workload_label"], strict=True))
    rows = with_strategies(charts.frame(read_cold_start(view.snapshot, filters), labels), view.link.strategy)
    rows = _chosen(view, rows, workloads)
    cases = cases[cases["workload_label"].isin(set(rows["workload"]))]
    if rows.empty:
        elements.nothing_to_show(
            "No trial under these filters told its cold start.", next_step="Widen them in the sidebar."
        )
        return view.link
    _cards(cases)
    by_case = sorted(
        shaping.row_dicts(rows), key=lambda row: (row["workload"], sort_key(row["strategy"]), row["case"])
    )
    order = tuple(dict.fromkeys(row["case"] for row in by_case))
    phases = tuple(name for name in dict.fromkeys(charts.PHASES.values()) if name in set(rows["phase"]))
    with st.container(border=True):
        elements.finding(
            charts.finding(rows),
            "Medians over trials, phase by phase, from spawning the process to its first result.",
        )
        elements.chart(
            charts.spec(order, phases),
            {"main": rows, "totals": charts.totals(rows)},
            key="cold-start-bars",
            alt="Phases from process start to first result, one stacked bar per case",
        )
    _table(cases)
    elements.listed("Beside the numbers", [str(aside) for aside in asides(cases)], icon=":material/report:")
    return view.link


def _filters(view: View, workloads: list[str], cases: pd.DataFrame) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=260):
            controls.one_of("focus", "Workload", {"": "All workloads", **{name: name for name in workloads}})
        strategies(view)
        if cases["cache"].nunique() > 2 or view.link.cache:
            controls.pills("cache", "Cache state", _CACHES)


def _chosen(view: View, rows: pd.DataFrame, workloads: list[str]) -> pd.DataFrame:
    link = view.link
    if link.focus in workloads:
        rows = rows[rows["workload"] == link.focus]
    elif link.focus:
        elements.note(f"{link.focus} has no case under these filters; showing all workloads.")
    if link.cache:
        rows = rows[rows["cache"].isin([*link.cache, CacheState.NONE.value])]
    return rows


def _cards(cases: pd.DataFrame) -> None:
    compiled = cases[cases["strategy"] != "eager"]
    eager = cases[cases["strategy"] == "eager"]
    with st.grid(4, min_column_width=150):
        for title, value, say, help_ in (
            (
                "Time to first result, compiled",
                compiled["time_to_first_result_ns"].median(),
                units.duration,
                "Median over the compiled cases shown, from spawning the process to its first result.",
            ),
            (
                "The same, eager",
                eager["time_to_first_result_ns"].median(),
                units.duration,
                "Median over the eager cases shown.",
            ),
            (
                "Compile cost",
                compiled["compile_cost_ns"].median(),
                units.duration,
                "Median over the compiled cases shown: calls until steady, minus as many steady calls.",
            ),
            (
                "Graph breaks",
                compiled["graph_breaks"].sum(min_count=1),
                units.count,
                "Sum over the compiled cases shown.",
            ),
        ):
            st.metric(title, say(value), border=True, height="stretch", help=help_)


def _table(cases: pd.DataFrame) -> None:
    rows = cases.sort_values(["workload_label", "strategy"], key=_order)
    table = pd.DataFrame(
        {
            "workload": rows["workload_label"],
            "strategy": rows["strategy"],
            "cache": rows["cache"].replace({"none": units.MISSING}),
            "first": [units.duration(value) for value in rows["time_to_first_result_ns"]],
            "cost": [
                units.MISSING if name == "eager" else units.duration(value)
                for name, value in zip(rows["strategy"], rows["compile_cost_ns"], strict=True)
            ],
            "interval": [
                units.MISSING if name == "eager" else units.interval(low, high, units.duration)
                for name, low, high in zip(
                    rows["strategy"], rows["compile_cost_low_ns"], rows["compile_cost_high_ns"], strict=True
                )
            ],
            "graphs": rows["graphs"],
            "breaks": rows["graph_breaks"],
            "recompiles": rows["recompiles"],
            "trials": rows["counted_trials"],
        }
    )
    right = st.column_config.TextColumn
    elements.table(
        table,
        {
            "workload": st.column_config.TextColumn("Workload", pinned=True),
            "strategy": "Strategy",
            "cache": "Cache state",
            "first": right("Time to first result", alignment="right"),
            "cost": right("Compile cost", alignment="right"),
            "interval": right("95 % interval", alignment="right"),
            "graphs": "Graphs",
            "breaks": "Graph breaks",
            "recompiles": "Recompiles",
            "trials": "Trials (n)",
        },
        key="cold-start-table",
        alt="Time to first result, compile cost, graphs, graph breaks and recompiles of every case",
    )


def _order(column: pd.Series) -> pd.Series:
    if column.name != "strategy":
        return column
    places = {name: place for place, name in enumerate(theme.ordered(column))}
    return column.map(places)
