"""A judged history as sentences, as a table and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame
from rich.table import Table
from rich.text import Text

from db.columns.metrics import BY_COLUMN, METRICS
from db.judge.history.releases import ReleaseStep
from db.judge.history.series import SeriesHistory
from db.judge.history.stretches import Cut
from db.judge.policy import Policy, Target
from db.judge.results import ChangeEvent, Row
from db.judge.targets import AT_LEAST, Forecast, forecast_crossing
from db.judge.words.verdicts import marked
from db.metrics.groups import floats
from db.metrics.throughput import write_of
from db.records.versions import component_name
from db.records.vocabulary import Metric, Verdict
from db.units import MISSING, interval, moment, percent, plural, words
from runner.output.tables import plain_table

# The targets of one series, and when a trend will cross them.

_BESIDE = {Metric.LATENCY: ("latency_p95_ns", "throughput_per_s")}
"""Quantities that the history of another metric tells of too."""


@dataclass(frozen=True)
class TargetOutlook:
    """A limit on this series, and when it will be crossed as far as that can be said."""

    quantity: str
    limit: float
    at_least: bool
    forecast: Forecast


def target_outlooks(
    points: DataFrame, series: SeriesHistory, targets: tuple[Target, ...], policy: Policy
) -> list[TargetOutlook]:
    """Every limit on this series with its forecast, read from the points since the last change."""
    start = series.segments[-1].start if series.segments else 0
    newest = points.iloc[-1]
    outlooks = []
    for target in targets:
        if not target.fits(str(newest["workload"]), str(newest["strategy"])):
            continue
        for quantity in (METRICS[series.metric].column, *_BESIDE.get(series.metric, ())):
            limit = target.limits().get(quantity)
            if limit:
                values = floats(points[quantity].iloc[start:])
                usable = values[np.isfinite(values) & (values > 0)]
                at_least = quantity in AT_LEAST
                forecast = forecast_crossing(usable, limit, at_least=at_least, policy=policy)
                outlooks.append(TargetOutlook(quantity, limit, at_least, forecast))
    return outlooks


SCHEMA = "compilewatch.history/1"
SHOWN_POINTS = 40
"""Points in the table; older ones only where something changed."""

_FLIPS = "~ flips"
_STYLES = {Verdict.REGRESSED: "red", Verdict.IMPROVED: "green"}


@dataclass(frozen=True)
class HistoryReport:
    """A judged series: its steps in time or from release to release, the steps of its counts, announcements
    that were taken back, and its targets. `versions` are the edits of the workload that it was judged across,
    `newest` is the verdict on the newest run against the one before, where there are too few for a history.
    """

    series: SeriesHistory
    outlooks: Sequence[TargetOutlook]
    releases: Sequence[ReleaseStep]
    exact: Sequence[ChangeEvent]
    withdrawn: Sequence[ChangeEvent]
    versions: Sequence[Cut] = ()
    newest: Row | None = None


def history_sentences(report: HistoryReport) -> Iterator[str]:
    """How long the history is and how noisy, each change, drift, and how far the targets are."""
    series = report.series
    name = METRICS[series.metric].name
    noise = "" if series.noise is None else f", run-to-run variation {percent(series.noise)}"
    moved = [step for step in report.releases if step.row.verdict in (Verdict.REGRESSED, Verdict.IMPROVED)]
    changes = len(series.events) + len(moved)
    yield f"{name} over {plural(series.points, 'run')}{noise}, {plural(changes, 'change')}."
    for event in series.events:
        when = f"{moment(event.at)}: " if event.at is not None else ""
        reach = _ends_text(event.interval, "95 % interval") or "no interval"
        sure = "" if event.p_value is None else f" (p {event.p_value:.2g}, {reach})"
        yield f"{when}{event.reason}{sure}"
    for event in report.withdrawn:
        yield f"{moment(event.at)}: announced then, taken back since: {event.reason}"
    for step in report.releases:
        yield f"torch {step.base_torch} to {step.head_torch}: {_row_text(step.row)}"
    if report.newest is not None:
        yield f"Too few runs for a history; the newest against the one before: {_row_text(report.newest)}"
    for event in report.exact:
        yield f"{moment(event.at)}: {METRICS[event.metric].name} {event.verdict.value}. {event.reason}"
    for cut in series.cuts:
        yield f"From point {cut.index + 1} on it is another series: {_named(cut.fields)} changed."
    for edit in report.versions:
        yield f"From point {edit.index + 1} on the workload is another version; judged across it, as asked."
    if series.two_mode:
        yield "The series has two modes: the machine alternates between two states."
    if series.drift is not None and series.drift.verdict is not Verdict.UNCHANGED:
        yield series.drift.reason
    for outlook in report.outlooks:
        quantity = BY_COLUMN[outlook.quantity]
        title, write = quantity.word, quantity.write
        side = "at least" if outlook.at_least else "at most"
        yield f"Target of {title}, {side} {write(outlook.limit)}: {outlook.forecast.reason}."


def _row_text(row: Row) -> str:
    change = (percent(row.change, signed=True), _ends_text(row.interval, "interval"))
    return f"{row.verdict.value} ({', '.join(filter(None, change))}). {row.reason}"


def _ends_text(interval: tuple[float, float] | None, name: str) -> str:
    return "" if interval is None else name + " " + " to ".join(percent(end, signed=True) for end in interval)


def history_table(points: DataFrame, report: HistoryReport) -> Table:
    """One row per run as they are read: the last ones, and earlier ones where something changed."""
    series = report.series
    figures = (METRICS[series.metric].word, "interval")
    table = plain_table(("date", "torch", *figures, "event"), right=figures)
    events = {event.index: event for event in series.events}
    cuts = {cut.index: cut for cut in series.cuts}
    edits = {step.index for step in report.versions}
    steps = _first_points(points, report.releases)
    first = max(0, len(points) - SHOWN_POINTS)
    rows = points.to_dict("records")
    shown = [i for i in range(len(rows)) if i >= first or i in {*events, *cuts, *edits}]
    for index in shown:
        event, cut = events.get(index), cuts.get(index)
        marks = [_mark(event)] if event else []
        marks += [_step_mark(steps[index])] if index in steps else []
        marks += [f"{_named(cut.fields)} changed"] if cut else []
        marks += ["another version of the workload"] if index in edits else []
        marks += ["suspect"] if rows[index]["point_suspect"] else []
        cells = (*_figures(rows[index], series.metric), "; ".join(marks))
        table.add_row(*(Text(cell) for cell in cells), style=_STYLES.get(event.verdict, "") if event else "")
    if len(shown) < len(rows):
        table.caption = f"{plural(len(rows) - len(shown), 'older run')} not shown; --json has them all."
    return table


def _first_points(points: DataFrame, releases: Sequence[ReleaseStep]) -> dict[int, ReleaseStep]:
    """By the position of each release's first point the step that led to it, if anything moved there."""
    builds = [str(each) for each in points["build_id"]]
    moved = (step for step in releases if step.row.verdict in _STYLES)
    return {builds.index(step.head_build): step for step in moved if step.head_build in builds}


def _step_mark(step: ReleaseStep) -> str:
    return f"{marked(step.row.verdict)} {percent(step.row.change, signed=True)}"


def _mark(event: ChangeEvent) -> str:
    components = ", ".join(map(component_name, event.changed_components))
    changed = f", {components} changed" if components else ""
    verdict = _FLIPS if event.verdict is Verdict.INCONCLUSIVE else marked(event.verdict)
    step = f"from {event.before:g}" if event.change is None else percent(event.change, signed=True)
    return f"{verdict} {step}{changed}"


def _named(fields: Sequence[str]) -> str:
    return ", ".join(map(words, fields))


def _figures(row: Mapping[Any, Any], metric: Metric) -> tuple[str, ...]:
    value, low, high = _known(row, metric)
    write = write_of(METRICS[metric], row)
    bounds = interval(low, high, write, trials=row["counted_trials"])
    shown = MISSING if value is None else write(value)
    return moment(row["last_started_at"]), str(row["torch"]), shown, bounds


def history_document(
    points: DataFrame, report: HistoryReport, sentences: Sequence[str], policy: Policy
) -> dict[str, Any]:
    """What `history --json` prints: every point, the judgement, and the policy in force."""
    series = report.series
    newest = points.iloc[-1]
    judgement = series.model_dump(mode="json", exclude={"points", "metric"})
    return {
        "schema": SCHEMA,
        "workload": str(newest["workload"]),
        "strategy": str(newest["strategy"]),
        "metric": series.metric.value,
        "unit": METRICS[series.metric].unit,
        "source_kind": str(newest["source_kind"]),
        "source_name": str(newest["source_name"]),
        "machine": {"id": str(newest["machine_id"]), "name": str(newest["machine"])},
        "points": [_point(row, series.metric) for row in points.to_dict("records")],
        **judgement,
        "version_steps": [step.index for step in report.versions],
        "releases": [step.model_dump(mode="json") for step in report.releases],
        "newest": None if report.newest is None else report.newest.model_dump(mode="json"),
        "exact_events": [event.model_dump(mode="json") for event in report.exact],
        "withdrawn": [event.model_dump(mode="json") for event in report.withdrawn],
        "targets": [
            asdict(each) | {"forecast": each.forecast.model_dump(mode="json")} for each in report.outlooks
        ],
        "sentences": list(sentences),
        "policy": policy.to_json(),
    }


def _known(row: Mapping[Any, Any], metric: Metric) -> tuple[Any, Any, Any]:
    """The value of a point, and the ends of its interval or else of its spread across trials."""
    entry = METRICS[metric]
    never = metric is Metric.BREAK_EVEN and row["break_even"] == "never"
    low, high = entry.interval or entry.band or (entry.column, entry.column)
    values = ("never" if never else row[entry.column], row[low], row[high])
    value, start, end = (None if pd.isna(each) else each for each in values)
    return value, start, end


def _point(row: Mapping[Any, Any], metric: Metric) -> dict[str, Any]:
    value, low, high = _known(row, metric)
    return {
        "run_id": row["run_id"],
        "build_id": row["build_id"],
        "torch": row["torch"],
        "started_at": row["last_started_at"],
        "value": value if value is None or value == "never" else float(value),
        "interval": None if low is None or high is None else [float(low), float(high)],
        "trials": int(row["trials"]),
        "suspect": bool(row["point_suspect"]),
    }
