"""What the page Trends is drawn from: the chart of the workload in focus, and every case as a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dashboard.charts import build_events, change_points, gaps, sparklines, target_lines, trend_rows, trends
from dashboard.charts.style import PreparedChart
from dashboard.links.links import Link
from dashboard.read.data import (
    filters_of,
    of_workload,
    read_choices,
    read_noise_floors,
    read_points,
    read_workloads,
    recent,
)
from dashboard.read.policy import policy_in_force, targets_in_force
from dashboard.read.shaping import ASIDE_COLUMNS, BUILD_COMPONENTS, asides, with_strategies
from dashboard.read.snapshots import Snapshot, cached
from dashboard.render import theme
from dashboard.render.published_lines import PUBLISHED_COLUMNS, published_lines
from db.queries.filters import Filters
from db.records.strategies import EAGER, sort_key
from db.wording import units
from db.wording.marks import bound_cell
from db.wording.metrics import HISTORY_METRICS, METRICS, MetricEntry
from db.wording.noise import floor_sentence

EARLIER = "Choose dates to see earlier ones."
_CASE = ["workload_id", "strategy_id"]


@dataclass(frozen=True)
class PageContent:
    """What the page is drawn from: the chart of the workload in focus, what others published about it, and a
    row per case.
    """

    chart: PreparedChart
    published: list[str]
    cases: pd.DataFrame
    reach: float
    without_number: list[str]


@cached
def workloads(snapshot: Snapshot, link: Link) -> list[str]:
    return sorted(set(read_workloads(snapshot, filters_of(link))["workload_label"]))


@cached
def axis(snapshot: Snapshot, link: Link) -> str:
    if link.axis != "auto":
        return link.axis
    return trend_rows.natural_axis(read_points(snapshot, recent(snapshot, filters_of(link)), "run"))


@cached
def metrics(snapshot: Snapshot, link: Link) -> list[str]:
    """The figures to choose from: those of a GPU where one was measured so, and always that of the link."""
    points = read_points(snapshot, recent(snapshot, filters_of(link)), "run")
    return [
        key
        for key in HISTORY_METRICS
        if key == link.metric or METRICS[key].on_every_device or points[METRICS[key].column].notna().any()
    ]


@cached
def page_content(snapshot: Snapshot, link: Link, focus: str) -> PageContent:
    """`link` names its axis."""
    builds = read_choices(snapshot).builds
    by: Literal["run", "build"] = "build" if link.axis == "torch" else "run"
    filters = filters_of(link)

    def points_of(wanted: Filters, *more: str) -> pd.DataFrame:
        points = read_points(snapshot, wanted, by)
        columns = dict.fromkeys(
            (
                *_CASE,
                *ASIDE_COLUMNS,
                *BUILD_COMPONENTS,
                "break_even",
                "bound",
                *trend_rows.needed(link.metric),
                *more,
            )
        )
        found = with_strategies(points[[name for name in columns if name in points]], link.strategy)
        return trend_rows.in_order(found, link.axis, list(builds))

    told_of_case = PUBLISHED_COLUMNS if link.metric == "speedup" else ()
    judged = change_points.NEEDED if link.axis == "time" else ()
    whole = points_of(of_workload(snapshot, filters, focus), *told_of_case, *judged)
    mine = whole[whole["workload_label"] == focus]
    points = points_of(recent(snapshot, filters))
    cases, reach = _case_rows(points, METRICS[link.metric])
    chart = _chart_of(mine, link, focus, builds)
    floor = floor_sentence(read_noise_floors(snapshot).get(link.machine or "", ()), (link.metric,))
    return PageContent(
        chart=replace(chart, notes=[*chart.notes, *filter(None, (floor,))]),
        published=published_lines(_newest(mine)) if told_of_case else [],
        cases=cases,
        reach=reach,
        without_number=[str(aside) for aside in asides(_newest(points))],
    )


def _chart_of(points: pd.DataFrame, link: Link, focus: str, builds: Mapping[str, str]) -> PreparedChart:
    """`points` of one workload; `builds` are all names by id, oldest first."""
    rows = trend_rows.frame(points, link.metric, builds)
    finding = trend_rows.finding(rows, link.metric, focus, link.axis)
    if rows.empty:
        return PreparedChart(finding)
    lines = target_lines.frame(rows, link.metric, targets_in_force())
    drawn, window, outside = target_lines.beside(lines, trend_rows.window(rows))
    since = gaps.since_first(points, rows, link.metric, axis=link.axis, names=builds)
    changes = change_points.over(link.axis, points, rows, link.metric, policy_in_force())
    spec = trends.spec(
        link.metric,
        axis=link.axis,
        scale=link.scale,
        strategies=tuple(theme.ordered(rows["strategy"])),
        builds=since.builds,
        shown=window,
        targets=not drawn.empty,
        changes=not changes.frame.empty,
    )
    events = build_events.events(points, rows)
    beside = {"targets": drawn, "changes": changes.frame}
    frames = {"main": rows, "events": events, **{name: each for name, each in beside.items() if len(each)}}
    unseen = trend_rows.unseen(points, rows, link.axis)
    earlier = [f"{unseen} {EARLIER}"] if unseen else []
    notes = [*changes.told, *earlier, *outside, *filter(None, (since.missing,))]
    return PreparedChart("; ".join(filter(None, (finding, changes.last))), spec, frames, notes)


def _numbers(points: pd.DataFrame, *names: str) -> NDArray[np.int64]:
    """Of each point a number that it shares with those that have the same values in these columns."""
    numbers = np.zeros(len(points), dtype=np.int64)
    for name in names:
        codes, distinct = points[name].array.factorize()
        numbers = numbers * len(distinct) + codes
    return numbers


def _newest(points: pd.DataFrame) -> pd.DataFrame:
    """The last point of each case."""
    _, from_end = np.unique(_numbers(points, *_CASE)[::-1], return_index=True)
    return points.take(np.sort(len(points) - 1 - from_end))


def _case_rows(points: pd.DataFrame, figure: MetricEntry) -> tuple[pd.DataFrame, float]:
    """A row per case, and how far from 1 the drawing of their histories reaches."""
    columns = ["workload_label", "strategy", "run_id", "last_started_at", "bound", figure.column]
    points = points[columns]
    if not figure.eager_too:
        points = points.take(np.flatnonzero((points["strategy"] != EAGER.name).to_numpy()))
    number = _numbers(points, "workload_label", "strategy")
    by_case = np.argsort(number, kind="stable")
    _, begins = np.unique(number[by_case], return_index=True)
    ends = [*begins.tolist(), len(points)][1:]
    values = points[figure.column].to_numpy(dtype=np.float64, na_value=np.nan)[by_case] / figure.divisor
    runs = points["run_id"].array.factorize()[0][by_case]
    moments = points["last_started_at"].to_numpy(dtype="datetime64[us]").astype(np.int64)[by_case]
    labels, strategies = (points[name].array.take(by_case[begins]).tolist() for name in columns[:2])
    rows = [
        _case_row(label, strategy, values[begin:end], runs[begin:end], moments[begin:end])
        for label, strategy, begin, end in zip(labels, strategies, begins.tolist(), ends, strict=True)
    ]
    rows.sort(key=lambda row: (row["workload"], sort_key(row["strategy"])))
    histories, reach = sparklines.relative([row["history"] for row in rows])
    bounds = dict(
        zip(zip(points["workload_label"], points["strategy"], strict=True), points["bound"], strict=True)
    )
    bound = [bound_cell(bounds[row["workload"], row["strategy"]]) for row in rows]
    last = pd.to_datetime([row["last"] for row in rows], unit="us", utc=True)
    return pd.DataFrame(rows).assign(history=histories, last=last, bound=bound), reach


def _case_row(
    workload: str,
    strategy: str,
    values: NDArray[np.float64],
    runs: NDArray[np.int64],
    moments: NDArray[np.int64],
) -> dict[str, Any]:
    """The row of a case whose points have these values, NaN where missing, runs and moments; `last` is the
    moment of the value that is shown as the newest, whatever was measured after it: on an axis of versions it
    is that of the highest.
    """
    has_value = ~np.isnan(values)
    known = values[has_value].tolist()
    return {
        "workload": workload,
        "strategy": strategy,
        "newest": units.significant(known[-1]) if known else units.MISSING,
        "change": _change(known),
        "history": known[-60:],
        "runs": len(set(runs[has_value].tolist())),
        "last": int(moments[has_value][-1]) if known else None,
    }


def _change(values: Sequence[float]) -> float | None:
    """From the last point but one to the last, in percent; what rounds to nothing has no sign."""
    if len(values) < 2 or not values[-2]:
        return None
    return round((values[-1] / values[-2] - 1) * 100, 1) + 0.0
