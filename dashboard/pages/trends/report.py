"""Trends as the parts of a report: the chart of the workload in focus, its points, every case as a row."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pandas as pd

from dashboard.charts import trend_rows
from dashboard.links.links import Link
from dashboard.pages.cases import focus_of
from dashboard.pages.trends import content
from dashboard.read import shaping
from dashboard.read.data import filters_of, of_workload, read_points, read_workloads
from dashboard.read.snapshots import Snapshot
from dashboard.render.published_lines import PUBLISHED_TITLE
from dashboard.reports.content import Frozen, ReportError, Section
from dashboard.reports.tables import charted, listed, of_cases, table_of
from db.wording import units
from db.wording.marks import BOUND_TITLE
from db.wording.metrics import METRICS

_READING = (
    "Band: 10th to 90th percentile of the trials. Hollow: a suspect measurement. Dashed lines: the build "
    "changed; in italics where several parts changed at once. Ring: the level changed."
)


def frozen(snapshot: Snapshot, link: Link) -> Frozen:
    """What the page shows of the workload in focus, and of every case."""
    link = replace(link, axis=content.axis(snapshot, link))
    filters = filters_of(link)
    focus = focus_of(link, read_workloads(snapshot, filters)["workload_label"])
    if link.focus not in (None, focus):
        raise ReportError(f"{link.focus} has nothing under these filters.", "Widen them, then freeze it.")
    by: Literal["run", "build"] = "build" if link.axis == "torch" else "run"
    points = read_points(snapshot, of_workload(snapshot, filters, focus), by)
    points = shaping.with_strategies(points, link.strategy)
    points = points[points["workload_label"] == focus]
    seen = content.page_content(snapshot, link, focus)
    notes = [note.removesuffix(f" {content.EARLIER}") for note in seen.chart.notes]
    parts = (
        *charted(
            replace(seen.chart, notes=notes),
            caption=_READING,
            alt=f"{METRICS[link.metric].name} of {focus}, point by point, by strategy",
        ),
        *_points(seen, link, focus),
        *listed(PUBLISHED_TITLE, seen.published),
        *_every_case(seen, link),
        *listed("Cases without a number in their newest run", seen.without_number),
    )
    return of_cases(parts, points, replace(link, focus=focus))


def _points(seen: content.PageContent, link: Link, focus: str) -> tuple[Section, ...]:
    """What the chart is drawn from, newest first."""
    if seen.chart.spec is None:
        return ()
    word = METRICS[link.metric].name
    titles = {
        "when_text": "Run",
        "build": "Build",
        "strategy": "Strategy",
        "value_text": word,
        "interval_text": "95 % interval",
        "trials_text": "Trials",
    }
    numbers = ("value_text", "interval_text", "trials_text")
    rows = seen.chart.frames["main"].iloc[::-1]
    return (table_of(rows, titles, title=f"{word} of {focus}, newest first", numeric=numbers),)


def _every_case(seen: content.PageContent, link: Link) -> tuple[Section, ...]:
    if seen.cases.empty:
        return ()
    figure, before = METRICS[link.metric], trend_rows.POINT_WORDS[link.axis]
    change = [units.MISSING if pd.isna(value) else f"{value:+.1f}" for value in seen.cases["change"]]
    last = [units.MISSING if pd.isna(at) else units.moment(at) for at in seen.cases["last"]]
    titles = {
        "workload": "Workload",
        "strategy": "Strategy",
        **BOUND_TITLE,
        "newest": f"Newest ({figure.axis_unit})",
        "change": f"Since the {before} before (%)",
        "runs": "Runs",
        "last": "Its run",
    }
    return (
        table_of(
            seen.cases.assign(change=change, last=last),
            titles,
            title=f"{figure.name} of every case",
            numeric=("newest", "change", "runs"),
        ),
    )
