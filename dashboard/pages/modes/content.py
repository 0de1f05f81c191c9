"""What the page Modes is drawn from: heat map, best strategy of each workload, Pareto front."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dashboard.charts.style import PreparedChart
from dashboard.links.links import Link
from dashboard.pages.modes import charts
from dashboard.read.data import filters_of, read_cases
from dashboard.read.shaping import asides, not_applicable, with_strategies
from dashboard.read.snapshots import Snapshot, cached
from dashboard.render import theme
from dashboard.render.published_lines import published_lines
from db.metrics.case_modes import choose_modes
from db.wording import units
from db.wording.marks import bound_cell

GOALS = {"latency": "Latency", "steps": "A number of steps", "memory": "Memory"}
BEST_COLUMNS = {
    "latency": {"value": "Latency", "ratio": "Speedup over eager"},
    "steps": {"total": "Total time", "eager": "Eager total", "saved": "Saved against eager"},
    "memory": {"value": "Peak memory", "ratio": "Eager peak / this peak"},
}


@dataclass(frozen=True)
class PageContent:
    """What the page is drawn from."""

    finding: str
    cells: pd.DataFrame
    without_meaning: dict[str, str]
    best: pd.DataFrame
    front: PreparedChart
    beside: list[str]
    published: list[str]


@cached
def page_content(snapshot: Snapshot, link: Link) -> PageContent | None:
    """For the goal that `link` names; None where no case fits its filters."""
    cases = with_strategies(read_cases(snapshot, filters_of(link)), link.strategy)
    if cases.empty:
        return None
    reasons = not_applicable(cases, set(link.strategy))
    return PageContent(
        finding=_heat_map_finding(cases),
        cells=charts.cells(cases, reasons, sorted(set(cases["workload_label"]))),
        without_meaning=reasons,
        best=_best_rows(cases, link.goal, link.steps),
        front=_front(charts.front(cases)),
        beside=[str(aside) for aside in asides(cases)],
        published=published_lines(cases),
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
            "bound": list(map(bound_cell, best["bound"])),
            "options": [int(counts[key]) for key in best["workload_id"]],
        }
    )


def _best_for_steps(cases: pd.DataFrame, steps: int) -> pd.DataFrame:
    chosen = choose_modes(cases, steps=steps)
    labels = dict(zip(cases["workload_id"], cases["workload_label"], strict=True))
    bounds = dict(zip(_keys(cases), map(bound_cell, cases["bound"]), strict=True))
    return pd.DataFrame(
        {
            "workload": chosen["workload_id"].map(labels),
            "strategy": chosen["strategy"],
            "total": [units.duration(value) for value in chosen["total_ns"]],
            "eager": [units.duration(value) for value in chosen["eager_total_ns"]],
            "saved": [units.duration(value) for value in chosen["saved_ns"]],
            "bound": [bounds.get(key, units.MISSING) for key in _keys(chosen)],
            "options": chosen["options"],
        }
    )


def _keys(cases: pd.DataFrame) -> list[tuple[str, ...]]:
    return list(cases[["workload_id", "strategy"]].itertuples(index=False, name=None))


def _front(rows: pd.DataFrame) -> PreparedChart:
    finding = "No compiled strategy is worth its compile cost"
    if rows.empty:
        return PreparedChart(finding)
    best = rows[rows["best"]]
    on_front = best["strategy"].value_counts()
    if len(on_front):
        on = f"{on_front.iloc[0]} of {units.plural(rows['workload'].nunique(), 'workload')}"
        finding = f"{on_front.index[0]} is worth its compile cost on {on}"
    log = charts.spread_out(rows)
    spec = charts.pareto_spec(tuple(theme.ordered(rows["strategy"])), log=log)
    return PreparedChart(finding, spec, {"main": rows, "front": best, "ends": charts.ends(rows, log=log)})
