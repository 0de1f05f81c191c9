"""The evidence of a verdict on one case: the trials of both sides, and every number with how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from dashboard import theme, upgrade_rows
from dashboard.charts import side_strips as charts
from dashboard.links import Page
from dashboard.verdict_words import interval_title
from dashboard.views import controls, elements
from db import units
from db.strategies import EAGER
from db.verdicts.results import BuildSide, CaseKey, Row
from db.verdicts.vocabulary import METRIC_NAMES, Metric

_RIGHT = ("base", "head", "change", "interval", "q", "trials")
_TITLES = {
    "metric": "Figure",
    "base": "Base",
    "head": "Head",
    "change": "Change",
    "interval": "Interval",
    "q": "q",
    "verdict": "Verdict",
    "moved": "Who moved",
    "trials": "Trials",
    "reason": "Why",
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
    found = [charts.side_trials(trials, side, case) for side in sides]
    strip = charts.frame(found, case, metric)
    drawn = strip.loc[strip["strategy"] == case.strategy, "trial_id"].nunique()
    return Evidence(
        strip=strip,
        middles=charts.middles(strip),
        table=upgrade_rows.case_table(rows),
        without_value=sum(map(len, found)) - drawn,
    )


def draw(found: Evidence, metric: Metric, *, key: str, confidence: float | None) -> None:
    """The trials of both sides as a strip each, and below it the numbers. `confidence` of their intervals."""
    shown = charts.shown_metric(metric)
    if found.strip.empty:
        elements.nothing_to_show(f"No trial of this case has a {METRIC_NAMES[shown].lower()} to draw.")
    else:
        strategies = tuple(theme.ordered(found.strip["strategy"]))
        elements.note(_reading(shown, found))
        elements.chart(
            charts.spec(_lanes(strategies), strategies, shown),
            {"main": found.strip, "middles": found.middles},
            key=f"{key}-strip",
            alt=f"{METRIC_NAMES[shown]} of every trial of the base side and of the head side",
            on_select=lambda: _open_trial(f"{key}-strip"),
        )
    text = st.column_config.TextColumn
    elements.table(
        found.table,
        {
            name: text(title, alignment="right" if name in _RIGHT else "left", pinned=name == "metric")
            for name, title in (_TITLES | {"interval": interval_title(confidence)}).items()
        },
        key=f"{key}-numbers",
        alt="Every figure of this case on both sides, its change with interval, verdict and reason",
    )


def _lanes(strategies: tuple[str, ...]) -> tuple[str, ...]:
    """Compiled first, eager below it, each with base above head."""
    ordered = sorted(strategies, key=lambda name: name == EAGER.name)
    return tuple(f"{side} · {name}" for name in ordered for side in charts.SIDES)


def _reading(metric: Metric, found: Evidence) -> str:
    said = "A point is a trial, the upright line the median of them."
    if metric is Metric.LATENCY:
        said = "A point is the median of a trial, its bar the 5th to 95th percentile, the upright line the "
        said += "median of the trials; eager is the control of the same processes."
    if found.without_value:
        said += f" {units.plural(found.without_value, 'trial')} without a value left out."
    return f"{said} Click a point for its trial."


def _open_trial(key: str) -> None:
    mark = elements.picked(key)
    if mark:
        controls.go(Page.TRIAL, trial=str(mark["trial_id"]))
