"""How break-even moved from build to build, as a chart where it is a number and in words where it is none."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from dashboard import shaping, theme
from dashboard.charts import gaps, trend_rows, trends
from dashboard.charts.prepared import PreparedChart
from dashboard.charts.style import Spec
from dashboard.data import filters_of, of_workload, read_choices, read_points
from dashboard.links import Link
from dashboard.shaping import with_caches, with_strategies
from dashboard.snapshots import Snapshot, remembered
from dashboard.views import break_even_plan, elements
from db.strategies import EAGER

_METRIC = "break_even"
MOST_BUILDS = 100
_COLUMNS = ["workload_label", "cache", "break_even"]


@dataclass(frozen=True)
class History:
    """Of the newest `MOST_BUILDS` a row each, newest first, a column per strategy in words; and the chart,
    with what is left out of either.
    """

    table: pd.DataFrame
    strategies: tuple[str, ...]
    chart: PreparedChart


@remembered
def _history(snapshot: Snapshot, link: Link, focus: str) -> History:
    filters = filters_of(replace(link, build=None))
    everything = read_points(snapshot, of_workload(snapshot, filters, focus), "build")
    points = everything[[*_COLUMNS, *trend_rows.needed(_METRIC)]]
    points = points[(points["workload_label"] == focus) & (points["strategy"] != EAGER.name)]
    points = with_caches(with_strategies(points, link.strategy), link.cache)
    names = read_choices(snapshot).builds
    with_points = set(points["build_id"])
    measured = [key for key in names if key in with_points]
    newest = measured[-MOST_BUILDS:]
    points = points[points["build_id"].isin(newest)]
    builds = tuple(names[key] for key in newest)
    strategies = tuple(theme.ordered(points["strategy"]))
    cells: dict[str, dict[str, str]] = {name: {"build": name} for name in builds}
    for point in shaping.row_dicts(points[["build_id", "strategy", "break_even", "break_even_steps"]]):
        cells[names[point["build_id"]]][point["strategy"]] = break_even_plan.steps_words(point)
    table = pd.DataFrame(list(cells.values())[::-1], columns=["build", *strategies])
    ordered = trend_rows.in_order(points, "torch", list(names))
    rows = trend_rows.frame(ordered, _METRIC, names)
    notes = [_unseen(len(measured)), trend_rows.unseen(ordered, rows, "torch")]
    drawn = rows["build"].nunique() > 1
    if drawn:
        notes.append(gaps.sentence(ordered, _METRIC, names))
    return History(
        table=table,
        strategies=strategies,
        chart=PreparedChart(
            finding=_finding(table, focus),
            spec=_spec(rows, builds, link) if drawn else None,
            frames={"main": rows, "events": rows.iloc[:0]},
            notes=[note for note in notes if note],
        ),
    )


def _spec(rows: pd.DataFrame, builds: tuple[str, ...], link: Link) -> Spec:
    return trends.spec(
        _METRIC,
        axis="torch",
        scale=link.scale,
        strategies=tuple(theme.ordered(rows["strategy"])),
        builds=builds,
        shown=trend_rows.window(rows),
    )


def _unseen(measured: int) -> str:
    return f"The newest {MOST_BUILDS} of {measured} builds." if measured > MOST_BUILDS else ""


def draw(snapshot: Snapshot, link: Link, focus: str) -> None:
    """Nothing where only one build was measured: a history needs two."""
    found = _history(snapshot, link, focus)
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


def _finding(table: pd.DataFrame, focus: str) -> str:
    """How the first strategy whose words changed moved between the last two builds, where there are two."""
    for strategy in table.columns[1:] if len(table) > 1 else ():
        new, old = table[strategy].iloc[:2]
        if isinstance(old, str) and isinstance(new, str) and old != new:
            return f"{strategy} on {focus}: break-even {old} before, {new} with {table['build'].iloc[0]}"
    return f"Break-even on {focus} is as it was before {table['build'].iloc[0]}" if len(table) else ""
