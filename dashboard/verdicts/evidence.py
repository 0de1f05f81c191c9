"""The evidence of a verdict on one case: the trials of both sides, and every number with how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from dashboard.charts.style import ChartContent
from dashboard.parts import parts
from dashboard.parts.parts import Chart, Empty, Part, Table, TableColumn
from dashboard.text import theme
from dashboard.verdicts import evidence_charts as charts
from dashboard.verdicts.tables import Q_VALUE, SIDES, TRIALS, case_table, change_columns
from db import units
from db.columns.metrics import METRICS
from db.judge.results import BuildSide, CaseKey, Row
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
