"""The history of one case on its machine, beside the evidence of a verdict on it."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dashboard.charts import build_events, trend_rows, trends
from dashboard.charts.figures import FIGURES
from dashboard.data import read_choices, read_points
from dashboard.snapshots import Snapshot, remembered
from dashboard.views import elements
from db.queries.filters import Filters
from db.verdicts.results import CaseKey
from db.verdicts.vocabulary import Metric


@dataclass(frozen=True)
class _Series:
    """Frames as `dashboard.charts.trend_rows` and `build_events` make them.

    `builds` are names, oldest version first.
    """

    rows: pd.DataFrame
    events: pd.DataFrame
    builds: tuple[str, ...]


@remembered
def _series(snapshot: Snapshot, machine_id: str, case: CaseKey, metric: str) -> _Series:
    points = read_points(snapshot, Filters(machines=(machine_id,), workloads=(case.workload,)))
    mine = points[(points["workload_id"] == case.workload_id) & (points["strategy_id"] == case.strategy_id)]
    names = read_choices(snapshot).builds
    mine = trend_rows.in_order(mine, "time", list(names))
    rows = trend_rows.frame(mine, metric, names)
    shown = set(rows["build"])
    builds = tuple(name for name in names.values() if name in shown)
    return _Series(rows, build_events.events(mine, rows), builds)


def draw(snapshot: Snapshot, machine_id: str | None, case: CaseKey, metric: Metric, *, key: str) -> None:
    """Nothing for a figure without a history, or where fewer than two runs have it."""
    if machine_id is None or metric.value not in FIGURES:
        return
    found = _series(snapshot, machine_id, case, metric.value)
    if len(found.rows) < 2:
        return
    word = FIGURES[metric.value].word
    elements.note(f"{word} run by run. Dashed lines: the build changed. Hollow: a suspect measurement.")
    elements.chart(
        trends.spec(
            metric.value,
            axis="time",
            scale="linear",
            strategies=(case.strategy,),
            builds=found.builds,
            shown=trend_rows.window(found.rows),
        ),
        {"main": found.rows, "events": found.events},
        key=key,
        alt=f"{word} of {case.workload} with {case.strategy}, run by run",
    )
