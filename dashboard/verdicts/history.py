"""The history of one case on its machine, over runs or over builds, with the changes of its level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd

from compilewatch.dashboard.charts import annotation_marks, build_events, change_points, trend_rows, trends
from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.parts.parts import Chart, Part
from compilewatch.dashboard.read.data import (
    read_annotations,
    read_choices_on,
    read_comparison,
    read_interleaved,
    read_points,
    read_turns,
    recent,
)
from compilewatch.dashboard.read.database import in_force
from compilewatch.dashboard.read.shaping import BUILD_COMPONENTS
from compilewatch.dashboard.read.versions import cached
from compilewatch.db.columns.metrics import HISTORY_METRICS, METRICS
from compilewatch.db.judge.compare.sides import VerdictError
from compilewatch.db.judge.results import CaseKey, Row
from compilewatch.db.judge.sequence import Case
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.vocabulary import Metric

_READING = "Dashed lines: the build changed. Ring: the level changed. Hollow: suspect, or one trial."

MOST_STEPS = 20
"""So many steps between builds are judged when a page is drawn."""
MOST_POINTS = 150
"""So many are drawn beside other evidence; the history of a model has five times as many."""


def each_to_the_next(
    filters: Filters, points: pd.DataFrame, metric: str, asked: Metric | None = None
) -> dict[object, Row]:
    """What the judge says of `metric` at each of `points` (a row per build and case, oldest first) against
    the build before that has the case too: verdicts by the index of the row, of the last `MOST_STEPS` builds.
    """
    newest = set(list(dict.fromkeys(points["build_id"]))[-MOST_STEPS:])
    judged: dict[tuple[str, str], dict[Case, Row]] = {}
    found: dict[object, Row] = {}
    for (workload, strategy), builds in points.groupby(["workload_id", "strategy_id"], sort=False)[
        "build_id"
    ]:
        for (_, base), (key, head) in pairwise(builds.items()):
            if head not in newest:
                continue
            if (base, head) not in judged:
                judged[base, head] = _rows_of(filters, base, head, metric, asked)
            if row := judged[base, head].get((str(workload), str(strategy))):
                found[key] = row
    return found


def _rows_of(filters: Filters, base: str, head: str, metric: str, asked: Metric | None) -> dict[Case, Row]:
    try:
        comparison = read_comparison(filters, base, head, asked=asked)
    except VerdictError:
        return {}
    return {row.case.ids: row for row in comparison.with_requested().rows if row.metric.value == metric}


def newest_points(
    read: Callable[[Filters], pd.DataFrame], filters: Filters, metric: str, axis: str, most: int
) -> tuple[pd.DataFrame, bool]:
    """What `read` finds under `filters`, and whether that is not all: over time of the newest `most` runs and
    one where these have more points than are drawn, so that it does not grow with the history.
    """
    newest = recent(filters, runs=most + 1) if axis == "time" else filters
    if newest != filters:
        points = read(newest)
        if np.count_nonzero(trend_rows.drawable(points, metric)) > most:
            return points, True
    return read(filters), False


@cached
def _chart(machine_id: str, case: CaseKey, metric: str) -> ChartContent | None:
    """Over builds where they are interleaved, else over time; None where fewer than two points have it."""
    filters = Filters(machines=(machine_id,), workloads=(case.workload,))
    axis = "torch" if read_interleaved(filters) else "time"
    columns = (*trend_rows.needed(metric), *BUILD_COMPONENTS, *change_points.NEEDED)
    names = read_choices_on(machine_id).builds

    def mine_of(wanted: Filters) -> pd.DataFrame:
        points = read_points(wanted, "build" if axis == "torch" else "run", columns)
        ids = points["workload_id"] == case.workload_id, points["strategy_id"] == case.strategy_id
        return trend_rows.in_order(points[ids[0] & ids[1]], axis, list(names))

    of_strategy = replace(filters, strategies=(case.strategy,))
    mine, older = newest_points(mine_of, of_strategy, metric, axis, MOST_POINTS)
    rows = trend_rows.frame(mine, metric, names, MOST_POINTS)
    if len(rows) < 2:
        return None
    if axis == "torch":
        judged = mine[trend_rows.judgeable(mine, metric)]
        changes = change_points.between(mine, rows, each_to_the_next(filters, judged, metric), names)
    else:
        changes = change_points.over(mine, rows, metric, in_force().policy, read_turns(filters))
    builds, missing = trend_rows.since_first(mine, rows, metric, axis=axis, names=names)
    written = annotation_marks.frame(read_annotations(machine_id, case.workload), mine, rows, names)
    events = build_events.events(mine, rows)
    frames = trends.frames_of(rows, events, changes=changes.frame, annotations=written)
    spec = trends.spec(
        metric,
        axis=axis,
        scale="linear",
        strategies=(case.strategy,),
        builds=builds,
        shown=trend_rows.window(rows),
        frames=tuple(frames),
    )
    word = trend_rows.POINT_WORDS[axis]
    finding = f"{METRICS[metric].name} of {case.workload} with {case.strategy}, {word} by {word}"
    left_out = trend_rows.older_points(mine, rows, axis, MOST_POINTS, older=older)
    notes = [*changes.notes, *annotation_marks.sentences(written), *filter(None, (left_out, missing))]
    return ChartContent(finding, spec, frames, notes)


def history_parts(machine_id: str | None, case: CaseKey, metric: Metric, *, key: str) -> tuple[Part, ...]:
    """The history of `case`; nothing for a metric without one, or where fewer than two points have it."""
    if machine_id is None or metric.value not in HISTORY_METRICS:
        return ()
    chart = _chart(machine_id, case, metric.value)
    return () if chart is None else (Chart(key, chart.finding, chart, explained=_READING),)
