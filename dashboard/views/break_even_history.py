"""How break-even moved from build to build, as a chart where it is a number and in words where it is none."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from dashboard import shaping, theme
from dashboard.charts import trend_rows, trends
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
    """Of the newest `MOST_BUILDS` a row each, newest first, a column per strategy in words; the chart's rows;
    and what is left out of either, in words.
    """

    table: pd.DataFrame
    strategies: tuple[str, ...]
    chart: pd.DataFrame
    unseen: str
    builds: tuple[str, ...]


@remembered
def _history(snapshot: Snapshot, link: Link, focus: str) -> History:
    filters = filters_of(replace(link, build=None))
    everything = read_points(snapshot, of_workload(snapshot, filters, focus), "build")
    points = with_strategies(everything[[*_COLUMNS, *trend_rows.needed(_METRIC)]], link.strategy)
    points = points[(points["workload_label"] == focus) & (points["strategy"] != EAGER.name)]
    points = with_caches(points, link.cache)
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
    ordered = trend_rows.in_order(points, "torch", list(names))
    chart = trend_rows.frame(ordered, _METRIC, names)
    return History(
        table=pd.DataFrame(list(cells.values())[::-1], columns=["build", *strategies]),
        strategies=strategies,
        chart=chart,
        unseen=" ".join(filter(None, (_unseen(len(measured)), trend_rows.unseen(ordered, chart, "torch")))),
        builds=builds,
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
            _finding(found, focus), "Steps until compiling has paid off, build by build. Band: 95 % interval."
        )
        if found.chart["build"].nunique() > 1:
            elements.chart(
                trends.spec(
                    _METRIC,
                    axis="torch",
                    scale=link.scale,
                    strategies=tuple(theme.ordered(found.chart["strategy"])),
                    builds=found.builds,
                    shown=trend_rows.window(found.chart),
                ),
                {"main": found.chart, "events": found.chart.iloc[:0]},
                key="break-even-history",
                alt=f"Break-even of {focus} over builds, one line per strategy",
            )
        if found.unseen:
            elements.note(found.unseen)
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


def _finding(found: History, focus: str) -> str:
    """How the first strategy whose words changed moved between the last two builds."""
    before, now = found.table.iloc[1], found.table.iloc[0]
    for strategy in found.strategies:
        old, new = before[strategy], now[strategy]
        if isinstance(old, str) and isinstance(new, str) and old != new:
            return f"{strategy} on {focus}: break-even {old} before, {new} with {now['build']}"
    return f"Break-even on {focus} is as it was before {now['build']}"
