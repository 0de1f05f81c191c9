"""Break-even of a workload from build to build: a row per build, and the chart of what is a number."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd

from dashboard import theme
from dashboard.charts import gaps, trend_rows, trends
from dashboard.charts.prepared import PreparedChart
from dashboard.charts.style import Spec
from dashboard.data import filters_of, of_workload, read_choices, read_points
from dashboard.links import Link
from dashboard.prepared import break_even_plan
from dashboard.shaping import with_caches, with_strategies
from dashboard.snapshots import Snapshot, remembered
from db.metrics.frame_rows import row_dicts
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
def history(snapshot: Snapshot, link: Link, focus: str) -> History:
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
    for point in row_dicts(points[["build_id", "strategy", "break_even", "break_even_steps"]]):
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


def _finding(table: pd.DataFrame, focus: str) -> str:
    """How the first strategy whose words changed moved between the last two builds, where there are two."""
    for strategy in table.columns[1:] if len(table) > 1 else ():
        new, old = table[strategy].iloc[:2]
        if isinstance(old, str) and isinstance(new, str) and old != new:
            return f"{strategy} on {focus}: break-even {old} before, {new} with {table['build'].iloc[0]}"
    return f"Break-even on {focus} is as it was before {table['build'].iloc[0]}" if len(table) else ""
