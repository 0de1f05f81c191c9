"""The evidence of a verdict on one case: the trials of both sides, and every number with how sure it is."""

from __future__ import annotations

import streamlit as st

from dashboard.links.links import Page
from dashboard.pages.evidence import charts, content
from dashboard.pages.evidence.content import chart
from dashboard.read.snapshots import Snapshot
from dashboard.render import controls, elements, theme
from dashboard.render.verdict_words import SIDES_HELP, interval_title
from db.judge.results import CaseKey
from db.judge.vocabulary import Metric
from db.wording.metrics import METRICS


def draw(found: content.Evidence, metric: Metric, *, key: str, confidence: float | None) -> None:
    """The trials of both sides as a strip each, and below it the numbers. `confidence` of their intervals."""
    shown = charts.shown_metric(metric)
    if found.strip.empty:
        elements.nothing_to_show(f"No trial of this case has a {METRICS[shown].word} to draw.")
    else:
        strategies = tuple(theme.ordered(found.strip["strategy"]))
        elements.note(f"{content.reading(shown, found)} Click a point for its trial.")
        elements.chart(
            charts.spec(content.lanes(strategies), strategies, shown),
            {"main": found.strip, "middles": found.middles},
            key=f"{key}-strip",
            alt=f"{METRICS[shown].name} of every trial of the base side and of the head side",
            on_select=lambda: _open_trial(f"{key}-strip"),
        )
    text = st.column_config.TextColumn
    elements.table(
        found.table,
        {
            name: text(
                title,
                alignment="right" if name in content.NUMBERS else "left",
                pinned=name == "metric",
                help=SIDES_HELP if name in ("base", "head") else None,
            )
            for name, title in (content.TITLES | {"interval": interval_title(confidence)}).items()
        },
        key=f"{key}-numbers",
        alt="Every figure of this case on both sides, its change with interval, verdict and reason",
    )


def _open_trial(key: str) -> None:
    mark = elements.picked(key)
    if mark:
        controls.go(Page.TRIAL, trial=str(mark["trial_id"]))


# The history of one case on its machine, beside the evidence of a verdict on it.


def draw_series(
    snapshot: Snapshot, machine_id: str | None, case: CaseKey, metric: Metric, *, key: str
) -> None:
    """Nothing for a figure without a history, or where fewer than two of its points have it."""
    found = chart(snapshot, machine_id, case, metric.value)
    if found is None or found.spec is None:
        return
    reading, *said = found.notes
    elements.note(reading)
    elements.chart(found.spec, found.frames, key=key, alt=found.finding)
    elements.notes(said)
