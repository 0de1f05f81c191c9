"""A figure of a model over time or over builds, and every case as a row with its history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pandas as pd

from compilewatch.dashboard.charts import (
    annotation_marks,
    build_events,
    change_points,
    target_lines,
    trend_rows,
    trends,
)
from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.links.links import Link, requested_metric
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import CASE, NO_FACTS, case_facts, floors_of, focus_of, interval_cell
from compilewatch.dashboard.parts.column_units import unit_of
from compilewatch.dashboard.parts.parts import CASE_FACTS, Chart, Empty, PageContent, Part, TableColumn
from compilewatch.dashboard.read.data import (
    filters_of,
    of_workload,
    read_annotations,
    read_choices_on,
    read_interleaved,
    read_known,
    read_points,
    read_turns,
    read_workloads,
    recent,
)
from compilewatch.dashboard.read.database import in_force
from compilewatch.dashboard.read.shaping import ASIDE_COLUMNS, BUILD_COMPONENTS, asides, newest_builds
from compilewatch.dashboard.read.versions import cached
from compilewatch.dashboard.text import theme
from compilewatch.dashboard.verdicts.history import each_to_the_next, newest_points
from compilewatch.dashboard.verdicts.pair import largest_change
from compilewatch.db import units
from compilewatch.db.cells import rows_of
from compilewatch.db.columns import column as columns
from compilewatch.db.columns.metrics import HISTORY_METRICS, METRICS
from compilewatch.db.judge.compare.sides import CODE, LIBRARIES
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from compilewatch.db.metrics.case_modes import with_strategies
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.identity import version_key
from compilewatch.db.records.strategies import EAGER, sort_key
from compilewatch.db.verdicts.noise_floors import floor_sentence

_AXIS_WORDS = {"time": "over time", "torch": "over builds"}
_BY_TURNS = (
    "Builds are interleaved here: between those nothing changed in time. Over builds shows their changes."
)
EARLIER = "Choose dates to see earlier ones."
_MOST_POINTS = 60
_CASE = ["workload_id", "strategy_id"]
# What the table of cases says of each point beside its figure.
_SUMMED_UP = ("workload_label", "strategy", "run_id", "last_started_at", *NO_FACTS)


@cached
def workloads(link: Link) -> list[str]:
    return sorted(set(read_workloads(filters_of(link))["workload_label"]), key=version_key)


@cached
def axis(link: Link) -> str:
    """Over builds where the judge reads the recent runs so: where builds took turns."""
    if link.axis != "auto":
        return link.axis
    return "torch" if read_interleaved(recent(filters_of(link))) else "time"


@cached
def metrics(link: Link) -> list[str]:
    """The figures to choose from: those of a GPU where one was measured so, and always that of the link."""
    on_gpus = {key: METRICS[key].column for key in HISTORY_METRICS if not METRICS[key].on_every_device}
    known = read_known(recent(filters_of(link)), tuple(on_gpus.values()))
    return [
        key for key in HISTORY_METRICS if key == link.metric or key not in on_gpus or on_gpus[key] in known
    ]


@cached
def page(link: Link) -> PageContent:
    """The workload in focus, else the first, over the axis of `link` or the one that suits its runs."""
    link = replace(link, axis=axis(link))
    labels = workloads(link)
    if not labels:
        return PageContent((Empty("No trial fits these filters.", "Widen them above."),), link)
    builds = read_choices_on(link.machine).builds
    by: Literal["run", "build"] = "build" if link.axis == "torch" else "run"
    filters = filters_of(link)

    def points_of(wanted: Filters, *columns: str) -> pd.DataFrame:
        points = read_points(wanted, by, (*ASIDE_COLUMNS, *columns))
        rows = with_strategies(points, link.strategy)
        return trend_rows.in_order(rows, link.axis, list(builds))

    change_columns = change_points.NEEDED if link.axis == "time" else ()
    drawn = (*BUILD_COMPONENTS, CODE, LIBRARIES, *trend_rows.needed(link.metric), *change_columns)

    def mine_of(wanted: Filters) -> pd.DataFrame:
        points = points_of(wanted, *drawn)
        return points[points["workload_label"] == focus]

    column = METRICS[link.metric].column
    of_one = link.focus in labels
    shown_of = of_workload(filters, str(link.focus)) if of_one else filters
    points = points_of(recent(shown_of), "build_id", *_SUMMED_UP, column)
    points = points[points["workload_label"] == link.focus] if of_one else points
    largest = None if of_one else largest_change(link)
    known = points["workload_label"][points[column].notna()]
    focus = largest.workload if largest and largest.workload in labels else focus_of(link, labels, known)
    focused = of_workload(filters, focus)
    mine, older = newest_points(mine_of, focused, link.metric, link.axis, trend_rows.MOST_POINTS)
    chart = _chart_of(mine, replace(link, focus=focus), builds, older=older)
    floors = floors_of(link.machine)
    floor = floor_sentence(floors, (link.metric,))
    opened_on = ""
    if largest and focus == largest.workload:
        more = units.plural(len(labels) - 1, "more workload") + " below" if len(labels) > 1 else ""
        word = "judged" if largest.shown else "undecided"
        opened_on = f"Opened on the largest {word} change since {largest.since}{f'; {more}' if more else ''}."
    chart = replace(chart, notes=[*filter(None, (opened_on,)), *chart.notes, *filter(None, (floor,))])
    shown = (
        Chart(
            "trend",
            f"{METRICS[link.metric].name} of {focus}, {_AXIS_WORDS[link.axis]}, by strategy",
            chart,
            _reading(link.axis),
        ),
        *_every_case(points, link, floors, of_one=of_one),
        *parts.listed(
            "Notes",
            [
                annotation_marks.sentence(each, builds)
                for each in read_annotations(link.machine, workload_of(link) if of_one else None)
            ],
        ),
        *parts.listed(
            "Cases without a number in their newest run", [str(aside) for aside in asides(_newest(points))]
        ),
    )
    return PageContent(
        shown,
        replace(link, focus=focus),
        builds=newest_builds(mine, "last_started_at"),
        data=lambda: {"cases": rows_of(_every_column(link, focus, by))},
        appendix=lambda: _points(chart, mine, link, focus),
    )


def _every_column(link: Link, focus: str, by: Literal["run", "build"]) -> pd.DataFrame:
    """The points of the workload in focus with all that is known of them."""
    points = read_points(of_workload(filters_of(link), focus), by)
    points = with_strategies(points, link.strategy)
    return points[points["workload_label"] == focus]


def _reading(axis: str) -> str:
    text = "Band: 10th to 90th percentile of the trials. Hollow: suspect, or one trial."
    if axis == "time":
        text += " Dashed lines: the build changed; in italics where several parts changed at once."
    return f"{text} Ring: the level changed."


def _points(chart: ChartContent, points: pd.DataFrame, link: Link, focus: str) -> tuple[Part, ...]:
    """What the chart is drawn from, newest first; `points` has its rows with raw values."""
    if chart.spec is None:
        return ()
    figure, drawn = METRICS[link.metric], chart.frames["main"].iloc[::-1]
    raw, unit = points.loc[drawn.index], unit_of(link.metric)
    rows = drawn[["build", "strategy"]].assign(
        at=raw["last_started_at"], value=raw[figure.column], trials=raw["counted_trials"]
    )
    if figure.interval is not None:
        ends = zip(*(raw[name] for name in (*figure.interval, "counted_trials")), strict=True)
        rows["interval"] = [interval_cell(*each) for each in ends]
    return parts.table(
        "trend-points",
        f"{figure.name} of {focus}, point by point",
        rows,
        {
            "at": TableColumn("Run (UTC)", kind="moment"),
            **parts.quantities(unit, {"value": figure.name}),
            **parts.texts({"build": "Build", "strategy": "Strategy"}),
            **(
                {"interval": TableColumn("95 % interval", "interval", numeric=True, unit=unit)}
                if figure.interval
                else {}
            ),
            **parts.TRIALS,
        },
        title=f"{figure.name} of {focus}, newest first",
    )


def _every_case(
    points: pd.DataFrame, link: Link, floors: Sequence[NoiseFloor], *, of_one: bool
) -> tuple[Part, ...]:
    """All cases of the view as rows: newest value, change, history; those `of_one` model need not name it."""
    figure, before = METRICS[link.metric], trend_rows.POINT_WORDS[link.axis]
    cases = _case_rows(points, figure, floors)
    return parts.table(
        "trend-table",
        f"{figure.name} of every case: newest value, change since the {before} before, history",
        cases,
        {
            **({} if of_one else {"workload": CASE["workload"]}),
            "strategy": CASE["strategy"],
            "newest": TableColumn("Newest", numeric=True, unit=unit_of(link.metric)),
            "change": TableColumn(
                "Change",
                numeric=True,
                unit="change",
                explained=f"Since the {before} before, not judged. The heading is.",
            ),
            "history": TableColumn("History", kind="line", explained="Each on a scale of its own."),
            "last": TableColumn("Measured (UTC)", kind="moment"),
            **parts.hidden(
                {
                    **CASE_FACTS,
                    "runs": TableColumn("Runs", kind="number", explained="How many runs the history shows."),
                }
            ),
        },
        title=f"{figure.name} of every {'strategy' if of_one else 'case'}",
    )


def _chart_of(points: pd.DataFrame, link: Link, builds: Mapping[str, str], *, older: bool) -> ChartContent:
    """`points` of the workload in focus; `builds` are all names by id, oldest first."""
    focus, metric, over_time = str(link.focus), link.metric, link.axis == "time"
    rows = trend_rows.frame(points, metric, builds)
    if rows.empty:
        none = f"No {METRICS[metric].name} of {focus} is known"
        said = (
            trend_rows.sentence(points, metric, builds) if trend_rows.judgeable(points, metric).any() else ""
        )
        return ChartContent(none, notes=[said or "It was not measured under these filters."])
    turns = read_turns(of_workload(filters_of(link), focus)) if over_time else frozenset()
    whole = filters_of(replace(link, build=None))
    judged, asked = points[trend_rows.judgeable(points, metric)], requested_metric(link)
    verdicts = {} if over_time else each_to_the_next(whole, judged, metric, asked)
    last = judged.drop_duplicates("strategy", keep="last")
    never_now = set(last.loc[~last.index.isin(rows.index), "strategy"])
    finding = trend_rows.finding(rows, metric, focus, verdicts, never_now=never_now)
    lines = target_lines.frame(rows, metric, in_force().target)
    window = trend_rows.with_eager(trend_rows.window(rows), metric)
    drawn, window, outside = target_lines.beside(lines, window)
    shown, missing = trend_rows.since_first(points, rows, metric, axis=link.axis, names=builds)
    if over_time:
        changes = change_points.over(points, rows, metric, in_force().policy, turns)
    else:
        changes = change_points.between(points, rows, verdicts, builds)
    mine = read_annotations(link.machine, workload_of(link))
    written = annotation_marks.frame(mine, points, rows, builds)
    events = build_events.events(points, rows)
    frames = trends.frames_of(rows, events, targets=drawn, changes=changes.frame, annotations=written)
    spec = trends.spec(
        metric,
        axis=link.axis,
        scale=link.scale,
        strategies=tuple(theme.ordered(rows["strategy"])),
        builds=shown,
        shown=window,
        frames=tuple(frames),
    )
    left_out = trend_rows.older_points(points, rows, link.axis, older=older)
    earlier = [f"{left_out} {EARLIER}"] if left_out else []
    design = [_BY_TURNS] if turns else []
    notes = [*design, *changes.notes, *earlier, *outside, *filter(None, (missing,))]
    return ChartContent("; ".join(filter(None, (finding, changes.last))), spec, frames, notes)


def workload_of(link: Link) -> str | None:
    """The name of the workload in focus, which its sizes share; None where none is."""
    return of_workload(filters_of(link), link.focus).workloads[0] if link.focus else None


def _newest(points: pd.DataFrame) -> pd.DataFrame:
    """The last point of each case."""
    return points.drop_duplicates(_CASE, keep="last")


def _case_rows(points: pd.DataFrame, figure: columns.Column, floors: Sequence[NoiseFloor]) -> pd.DataFrame:
    """A row per case."""
    cases = points if figure.eager_too else points[points["strategy"] != EAGER.name]
    known = cases[cases[figure.column].notna()]
    values: dict[tuple[str, str], list[float]] = {key: [] for key in _keys(cases)}
    runs: dict[tuple[str, str], set[str]] = {key: set() for key in values}
    of_points = known[figure.column].tolist(), known["run_id"].tolist()
    for key, value, run in zip(_keys(known), *of_points, strict=True):
        values[key].append(value)
        runs[key].add(run)
    last = _newest(known)
    newest = dict(zip(_keys(last), row_dicts(last[["last_started_at", *NO_FACTS]]), strict=True))
    return pd.DataFrame(
        [
            {
                "workload": key[0],
                "strategy": key[1],
                **_case_cells(newest.get(key), values[key], figure, floors),
                "runs": len(runs[key]),
            }
            for key in sorted(values, key=lambda key: (key[0], sort_key(key[1])))
        ]
    )


def _keys(points: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Of each point the label of its workload and its strategy."""
    return zip(points["workload_label"].tolist(), points["strategy"].tolist(), strict=True)


def _case_cells(
    newest: dict[str, Any] | None,
    values: Sequence[float],
    figure: columns.Column,
    floors: Sequence[NoiseFloor],
) -> dict[str, Any]:
    """The cells of a case with these `values`, the last of them at the point `newest`; `last` is its moment,
    whatever was measured after it: on an axis of versions it is that of the highest.
    """
    return {
        "newest": values[-1] if values else None,
        "change": values[-1] / values[-2] - 1 if len(values) > 1 and values[-2] else None,
        **case_facts(newest or NO_FACTS, floors, figure.key),
        "history": list(values[-_MOST_POINTS:]) if len(values) > 1 else [],
        "last": newest["last_started_at"] if newest else None,
    }
