"""Modes: which strategy suits which workload, for latency, for a number of steps, or for memory."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from dashboard import theme
from dashboard.charts import heat_map, pareto
from dashboard.charts.prepared import PreparedChart
from dashboard.data import filters_of, read_cases
from dashboard.links import Link, Page
from dashboard.published_lines import PUBLISHED_TITLE, published_lines
from dashboard.shaping import asides, not_applicable, with_strategies
from dashboard.snapshots import Snapshot, remembered
from dashboard.views import controls, elements
from dashboard.views.shell import View, strategies
from db import units
from db.metrics.case_modes import choose_modes

_GOALS = {"latency": "Latency", "steps": "A number of steps", "memory": "Memory"}
_BEST_COLUMNS = {
    "latency": {"value": "Latency", "ratio": "Speedup over eager"},
    "steps": {"total": "Total time", "eager": "Eager total", "saved": "Saved against eager"},
    "memory": {"value": "Peak memory", "ratio": "Eager peak / this peak"},
}


@dataclass(frozen=True)
class Seen:
    """What the page is drawn from."""

    finding: str
    cells: pd.DataFrame
    without_meaning: dict[str, str]
    best: pd.DataFrame
    front: PreparedChart
    beside: list[str]
    published: list[str]


@remembered
def _seen(snapshot: Snapshot, link: Link) -> Seen | None:
    """None where no case fits the filters."""
    cases = with_strategies(read_cases(snapshot, filters_of(link)), link.strategy)
    if cases.empty:
        return None
    reasons = not_applicable(cases, set(link.strategy))
    return Seen(
        finding=_heat_map_finding(cases),
        cells=heat_map.cells(cases, reasons, sorted(set(cases["workload_label"]))),
        without_meaning=reasons,
        best=_best_rows(cases, link.goal, link.steps),
        front=_front(pareto.front(cases)),
        beside=[str(aside) for aside in asides(cases)],
        published=published_lines(cases),
    )


def draw(view: View) -> Link:
    """The page for the goal that the link names."""
    strategies(view)
    seen = _seen(view.snapshot, view.link)
    if seen is None:
        elements.nothing_to_show("No case fits these filters.", next_step="Widen them in the sidebar.")
        return view.link
    _heat_map(seen)
    _best(view, seen.best)
    _pareto(seen.front)
    elements.listed("Beside the numbers", seen.beside, icon=":material/report:")
    elements.listed(PUBLISHED_TITLE, seen.published, icon=":material/public:")
    return view.link


def _heat_map(seen: Seen) -> None:
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
            heat_map.spec(tuple(dict.fromkeys(cells["workload"])), tuple(theme.ordered(cells["strategy"]))),
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


def _best(view: View, table: pd.DataFrame) -> None:
    goal = view.link.goal
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            controls.segments("goal", "Best strategy for", _GOALS)
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
                    for name, title in _BEST_COLUMNS[goal].items()
                },
                "options": st.column_config.NumberColumn("Strategies compared"),
            },
            key="modes-best",
            alt=f"Best strategy of every workload for {_GOALS[goal].lower()}",
        )


def _best_rows(cases: pd.DataFrame, goal: str, steps: int) -> pd.DataFrame:
    if goal == "steps":
        return _best_for_steps(cases, steps)
    column, say, ratio = (
        ("latency_ns", units.duration, "speedup")
        if goal == "latency"
        else ("peak_bytes", units.size, "memory_ratio")
    )
    usable = cases[cases[column].notna() & (cases["status"] != "failed")].sort_values(column)
    best = usable.groupby("workload_id", sort=False).head(1).sort_values("workload_label")
    counts = usable["workload_id"].value_counts()
    return pd.DataFrame(
        {
            "workload": best["workload_label"],
            "strategy": best["strategy"],
            "value": [say(value) for value in best[column]],
            "ratio": [units.ratio(value) for value in best[ratio]],
            "options": [int(counts[key]) for key in best["workload_id"]],
        }
    )


def _best_for_steps(cases: pd.DataFrame, steps: int) -> pd.DataFrame:
    chosen = choose_modes(cases, steps=steps)
    labels = dict(zip(cases["workload_id"], cases["workload_label"], strict=True))
    return pd.DataFrame(
        {
            "workload": chosen["workload_id"].map(labels),
            "strategy": chosen["strategy"],
            "total": [units.duration(value) for value in chosen["total_ns"]],
            "eager": [units.duration(value) for value in chosen["eager_total_ns"]],
            "saved": [units.duration(value) for value in chosen["saved_ns"]],
            "options": chosen["options"],
        }
    )


def _front(rows: pd.DataFrame) -> PreparedChart:
    finding = "No compiled strategy is worth its compile cost"
    if rows.empty:
        return PreparedChart(finding)
    best = rows[rows["best"]]
    on_front = best["strategy"].value_counts()
    if len(on_front):
        on = f"{on_front.iloc[0]} of {units.plural(rows['workload'].nunique(), 'workload')}"
        finding = f"{on_front.index[0]} is worth its compile cost on {on}"
    log = pareto.spread_out(rows)
    spec = pareto.spec(tuple(theme.ordered(rows["strategy"])), log=log)
    return PreparedChart(finding, spec, {"main": rows, "front": best, "ends": pareto.ends(rows, log=log)})


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
