"""A judged history as sentences, as a table and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
from pandas import DataFrame
from rich.table import Table
from rich.text import Text

from compilewatch.db.columns.metrics import BY_COLUMN, METRICS
from compilewatch.db.judge.decide import MOVED
from compilewatch.db.judge.history.machine import ReleaseStep
from compilewatch.db.judge.history.series import TargetOutlook
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import ChangeEvent, Row
from compilewatch.db.judge.verdict_marks import marked
from compilewatch.db.metrics.throughput import write_of
from compilewatch.db.records.identity import component_name
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.units import MISSING, interval, moment, percent, plural, words
from compilewatch.db.verdicts.case_history import CaseHistory
from compilewatch.runner.output.tables import plain_table

SCHEMA = "compilewatch.history/1"
SHOWN_POINTS = 40
"""Points in the table; older ones only where something changed."""

_FLIPS = "~ flips"
_STYLES = {Verdict.REGRESSED: "red", Verdict.IMPROVED: "green"}


def history_sentences(judged: CaseHistory, outlooks: Sequence[TargetOutlook]) -> Iterator[str]:
    """How long the history is and how noisy, each change, drift, and how far the targets are."""
    series = judged.series
    name = METRICS[series.metric].name
    noise = "" if series.noise is None else f", run-to-run variation {percent(series.noise)}"
    moved = [step for step in judged.releases if step.row.verdict in MOVED]
    changes = len(series.events) + len(moved)
    yield f"{name} over {plural(series.points, 'run')}{noise}, {plural(changes, 'change')}."
    for event in series.events:
        when = f"{moment(event.at)}: " if event.at is not None else ""
        reach = _ends_text(event.interval, "95 % interval") or "no interval"
        sure = "" if event.p_value is None else f" (p {event.p_value:.2g}, {reach})"
        yield f"{when}{event.reason}{sure}"
    for event in judged.withdrawn:
        yield f"{moment(event.at)}: announced then, taken back since: {event.reason}"
    for step in judged.releases:
        yield f"torch {step.base_torch} to {step.head_torch}: {_row_text(step.row)}"
    if judged.newest is not None:
        yield f"Too few runs for a history; the newest against the one before: {_row_text(judged.newest)}"
    for event in judged.exact:
        yield f"{moment(event.at)}: {METRICS[event.metric].name} {event.verdict.value}. {event.reason}"
    for cut in series.cuts:
        yield f"From point {cut.index + 1} on it is another series: {_named(cut.fields)} changed."
    for edit in judged.versions:
        yield f"From point {edit.index + 1} on the workload is another version; judged across it, as asked."
    if series.two_mode:
        yield "The series has two modes: the machine alternates between two states."
    if series.drift is not None and series.drift.verdict is not Verdict.UNCHANGED:
        yield series.drift.reason
    for outlook in outlooks:
        quantity = BY_COLUMN[outlook.quantity]
        title, write = quantity.word, quantity.write
        side = "at least" if outlook.at_least else "at most"
        yield f"Target of {title}, {side} {write(outlook.limit)}: {outlook.forecast.reason}."


def _row_text(row: Row) -> str:
    change = (percent(row.change, signed=True), _ends_text(row.interval, "interval"))
    return f"{row.verdict.value} ({', '.join(filter(None, change))}). {row.reason}"


def _ends_text(interval: tuple[float, float] | None, name: str) -> str:
    return "" if interval is None else name + " " + " to ".join(percent(end, signed=True) for end in interval)


def history_table(points: DataFrame, judged: CaseHistory) -> Table:
    """One row per run as they are read: the last ones, and earlier ones where something changed."""
    series = judged.series
    # All runs of a build say another number: commands and pages that have one value a build give that.
    figures = (f"{METRICS[series.metric].word}, run by run", "interval")
    table = plain_table(("date", "torch", *figures, "event"), right=figures)
    events = {event.index: event for event in series.events}
    cuts = {cut.index: cut for cut in series.cuts}
    edits = {step.index for step in judged.versions}
    steps = _first_points(points, judged.releases)
    first = max(0, len(points) - SHOWN_POINTS)
    rows = points.to_dict("records")
    shown = [i for i in range(len(rows)) if i >= first or i in {*events, *cuts, *edits}]
    for index in shown:
        event, cut = events.get(index), cuts.get(index)
        marks = [_mark(event)] if event else []
        if step := steps.get(index):
            marks.append(f"{marked(step.row.verdict)} {percent(step.row.change, signed=True)}")
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
    points: DataFrame,
    judged: CaseHistory,
    outlooks: Sequence[TargetOutlook],
    sentences: Sequence[str],
    policy: Policy,
) -> dict[str, Any]:
    """What `history --json` prints: every point, the judgement, and the policy in force."""
    series = judged.series
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
        "trials_of": "run",
        "points": [_point(row, series.metric) for row in points.to_dict("records")],
        **judgement,
        "version_steps": [step.index for step in judged.versions],
        "releases": [step.model_dump(mode="json") for step in judged.releases],
        "newest": None if judged.newest is None else judged.newest.model_dump(mode="json"),
        "exact_events": [event.model_dump(mode="json") for event in judged.exact],
        "withdrawn": [event.model_dump(mode="json") for event in judged.withdrawn],
        "targets": [asdict(each) | {"forecast": each.forecast.model_dump(mode="json")} for each in outlooks],
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
