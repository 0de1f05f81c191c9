"""The history of one case on its machine, beside the evidence of a verdict on it."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dashboard.charts import build_events, gaps, trend_rows, trends
from dashboard.charts.figures import FIGURES
from dashboard.data import read_choices, read_points
from dashboard.snapshots import Snapshot, remembered
from dashboard.views import elements
from db.queries.filters import Filters
from db.verdicts.results import CaseKey
from db.verdicts.vocabulary import Metric

_READING = {
    "time": "run by run. Dashed lines: the build changed. Hollow: a suspect measurement.",
    "torch": "build by build. Hollow: a suspect measurement.",
}


@dataclass(frozen=True)
class _Series:
    """Frames as `dashboard.charts.trend_rows` and `build_events` make them, over the `axis` that sets the
    builds apart. `builds` are names, oldest version first; `missing` names those without a number.
    """

    axis: str
    rows: pd.DataFrame
    events: pd.DataFrame
    builds: tuple[str, ...]
    missing: str


@remembered
def _series(snapshot: Snapshot, machine_id: str, case: CaseKey, metric: str) -> _Series:
    filters = Filters(machines=(machine_id,), workloads=(case.workload,))
    points = read_points(snapshot, filters, "run")
    axis = trend_rows.natural_axis(points)
    if axis == "torch":
        points = read_points(snapshot, filters, "build")
    mine = points[(points["workload_id"] == case.workload_id) & (points["strategy_id"] == case.strategy_id)]
    names = read_choices(snapshot).builds
    mine = trend_rows.in_order(mine, axis, list(names))
    rows = trend_rows.frame(mine, metric, names)
    return _Series(
        axis=axis,
        rows=rows,
        events=build_events.events(mine, rows),
        builds=gaps.axis_builds(mine, names),
        missing=gaps.sentence(mine, metric, names) if axis == "torch" else "",
    )


def draw(snapshot: Snapshot, machine_id: str | None, case: CaseKey, metric: Metric, *, key: str) -> None:
    """Nothing for a figure without a history, or where fewer than two of its points have it."""
    if machine_id is None or metric.value not in FIGURES:
        return
    found = _series(snapshot, machine_id, case, metric.value)
    if len(found.rows) < 2:
        return
    word, point = FIGURES[metric.value].word, trend_rows.POINT_WORDS[found.axis]
    elements.note(f"{word} {_READING[found.axis]}")
    elements.chart(
        trends.spec(
            metric.value,
            axis=found.axis,
            scale="linear",
            strategies=(case.strategy,),
            builds=found.builds,
            shown=trend_rows.window(found.rows),
        ),
        {"main": found.rows, "events": found.events},
        key=key,
        alt=f"{word} of {case.workload} with {case.strategy}, {point} by {point}",
    )
    elements.notes([found.missing] if found.missing else [])
