"""The evidence of a verdict on one case: the trials of both sides, and every number with how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pandas as pd

from dashboard.charts import annotation_marks, build_events, change_points, gaps, trend_rows, trends
from dashboard.charts.style import ChartContent
from dashboard.parts import parts
from dashboard.parts.parts import Chart, Empty, Part, Table, TableColumn
from dashboard.read.data import (
    read_annotations,
    read_choices_on,
    read_comparison,
    read_interleaved,
    read_points,
    read_turns,
)
from dashboard.read.policy import policy_in_force
from dashboard.read.shaping import BUILD_COMPONENTS
from dashboard.read.versions import cached
from dashboard.text import theme
from dashboard.verdicts import evidence_charts as charts
from dashboard.verdicts.tables import Q_VALUE, SIDES, TRIALS, case_table, change_columns
from db import units
from db.columns.metrics import HISTORY_METRICS, METRICS
from db.judge.compare.sides import VerdictError
from db.judge.results import BuildSide, CaseKey, Row
from db.judge.sequence import Case
from db.queries.filters import Filters
from db.records.strategies import EAGER
from db.records.vocabulary import Metric


def _columns(confidence: float | None) -> dict[str, TableColumn]:
    """`confidence` of the intervals."""
    return {
        "metric": TableColumn("Metric", pinned=True),
        **change_columns(confidence),
        "verdict": TableColumn("Verdict"),
        **SIDES,
        **parts.hidden({**Q_VALUE, "moved": TableColumn("Who moved"), **TRIALS}),
        "reason": TableColumn("Why", wide=True),
    }


@dataclass(frozen=True)
class Evidence:
    """What is shown of one case; `without_value` counts trials that have no value to draw."""

    strip: pd.DataFrame
    middles: pd.DataFrame
    table: pd.DataFrame
    without_value: int


def evidence(
    trials: pd.DataFrame, sides: Sequence[BuildSide], case: CaseKey, rows: Sequence[Row], metric: Metric
) -> Evidence:
    """Of the verdicts `rows` on `case`, and of its `trials` on both `sides`, base first."""
    sides_trials = [charts.side_trials(trials, side, case) for side in sides]
    strip = charts.frame(sides_trials, case, metric)
    drawn = strip.loc[strip["strategy"] == case.strategy, "trial_id"].nunique()
    return Evidence(
        strip=strip,
        middles=charts.middles(strip),
        table=case_table(rows),
        without_value=sum(map(len, sides_trials)) - drawn,
    )


def lanes(strategies: tuple[str, ...]) -> tuple[str, ...]:
    """Compiled first, eager below it, each with base above head."""
    ordered = sorted(strategies, key=lambda name: name == EAGER.name)
    return tuple(f"{side} · {name}" for name in ordered for side in charts.SIDES)


def reading(metric: Metric) -> str:
    text = "A point is a trial, the upright line their geometric mean."
    if metric is Metric.LATENCY:
        text = "A point is the median of a trial, its bar the 5th to 95th percentile, the upright line the "
        text += "geometric mean of the trials. Eager is the control of the same processes."
    return text


def evidence_parts(
    evidence: Evidence, metric: Metric, title: str, *, key: str, confidence: float | None
) -> tuple[Part, ...]:
    """The trials of both sides of the case called `title`, and below them the numbers. `confidence` of their
    intervals; the parts have keys that begin with `key`.
    """
    shown = charts.shown_metric(metric)
    alt = f"{METRICS[shown].name} of every trial of the base side and of the head side"
    drawn: Part = Empty(f"No trial of this case has a {METRICS[shown].word} to draw.")
    if not evidence.strip.empty:
        strategies = tuple(theme.ordered(evidence.strip["strategy"]))
        missing = f"{units.plural(evidence.without_value, 'trial')} without a value left out."
        strip = ChartContent(
            f"{title}: the trials of both sides",
            charts.spec(lanes(strategies), strategies, shown),
            {"main": evidence.strip, "middles": evidence.middles},
            [missing] if evidence.without_value else [],
        )
        drawn = Chart(f"{key}-strip", alt, strip, explained=reading(shown))
    return (
        drawn,
        Table(
            f"{key}-numbers",
            "Every metric of this case on both sides, its change with interval, verdict and reason",
            evidence.table,
            _columns(confidence),
        ),
    )


MOST_STEPS = 20
"""So many steps between builds are judged when a page is drawn."""


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
    return {row.case.ids: row for row in comparison.with_asked().rows if row.metric.value == metric}


# The history of one case on its machine, over runs or over builds, with the changes of its level.

_READING = "Dashed lines: the build changed. Ring: the level changed. Hollow: suspect, or one trial."
_POINT = {axis: f"{word} by {word}" for axis, word in trend_rows.POINT_WORDS.items()}


@dataclass(frozen=True)
class Series:
    """Frames as `dashboard.charts.trend_rows` and `build_events` make them, over the `axis` that sets the
    builds apart. `builds` are names, oldest version first; `missing` names those without a number. `notes`
    are the changes of level in the frame `changes`, `annotations` what somebody wrote.
    """

    axis: str
    rows: pd.DataFrame
    events: pd.DataFrame
    changes: pd.DataFrame
    annotations: pd.DataFrame
    notes: list[str]
    builds: tuple[str, ...]
    missing: str


@cached
def series(machine_id: str, case: CaseKey, metric: str) -> Series:
    filters = Filters(machines=(machine_id,), workloads=(case.workload,))
    axis = "torch" if read_interleaved(filters) else "time"
    columns = (*trend_rows.needed(metric), *BUILD_COMPONENTS, *change_points.NEEDED)
    points = read_points(filters, "build" if axis == "torch" else "run", columns)
    mine = points[(points["workload_id"] == case.workload_id) & (points["strategy_id"] == case.strategy_id)]
    names = read_choices_on(machine_id).builds
    mine = trend_rows.in_order(mine, axis, list(names))
    rows = trend_rows.frame(mine, metric, names)
    if axis == "torch":
        changes = change_points.between(rows, each_to_the_next(filters, mine.loc[rows.index], metric))
    else:
        changes = change_points.over(mine, rows, metric, policy_in_force(), read_turns(filters))
    return Series(
        axis=axis,
        rows=rows,
        events=build_events.events(mine, rows),
        changes=changes.frame,
        annotations=annotation_marks.frame(read_annotations(machine_id), mine, rows, names),
        notes=changes.notes,
        builds=gaps.axis_builds(mine, names),
        missing=gaps.sentence(mine, metric, names) if axis == "torch" else "",
    )


def chart(machine_id: str | None, case: CaseKey, metric: str) -> ChartContent | None:
    """The chart of `series`, titled with what it shows; None for a figure without a history, or where fewer
    than two of its points have it.
    """
    if machine_id is None or metric not in HISTORY_METRICS:
        return None
    drawn = series(machine_id, case, metric)
    if len(drawn.rows) < 2:
        return None
    spec = trends.spec(
        metric,
        axis=drawn.axis,
        scale="linear",
        strategies=(case.strategy,),
        builds=drawn.builds,
        shown=trend_rows.window(drawn.rows),
        changes=not drawn.changes.empty,
        annotated=not drawn.annotations.empty,
    )
    frames = {"main": drawn.rows, "events": drawn.events}
    marks = {"changes": drawn.changes, "annotations": drawn.annotations}
    frames |= {name: frame for name, frame in marks.items() if len(frame)}
    word = METRICS[metric].name
    return ChartContent(
        finding=f"{word} of {case.workload} with {case.strategy}, {_POINT[drawn.axis]}",
        spec=spec,
        frames=frames,
        notes=[*drawn.notes, *annotation_marks.sentences(drawn.annotations), *filter(None, (drawn.missing,))],
    )


def series_parts(machine_id: str | None, case: CaseKey, metric: Metric, *, key: str) -> tuple[Part, ...]:
    """The history of `case`; nothing for a metric without one, or where fewer than two points have it."""
    drawn = chart(machine_id, case, metric.value)
    return () if drawn is None else (Chart(key, drawn.finding, drawn, explained=_READING),)
