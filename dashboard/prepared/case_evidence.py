"""The evidence of a verdict on one case: the trials of both sides, and every number with how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from dashboard import upgrade_rows
from dashboard.charts import side_strips as charts
from db import units
from db.strategies import EAGER
from db.verdicts.results import BuildSide, CaseKey, Row
from db.verdicts.vocabulary import Metric

_MEANS = " (the table has the geometric mean of those compared)"

NUMBERS = ("base", "head", "change", "interval", "q", "trials")
TITLES = {
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


def lanes(strategies: tuple[str, ...]) -> tuple[str, ...]:
    """Compiled first, eager below it, each with base above head."""
    ordered = sorted(strategies, key=lambda name: name == EAGER.name)
    return tuple(f"{side} · {name}" for name in ordered for side in charts.SIDES)


def reading(metric: Metric, found: Evidence) -> str:
    said = f"A point is a trial, the upright line the median of them{_MEANS}."
    if metric is Metric.LATENCY:
        said = "A point is the median of a trial, its bar the 5th to 95th percentile, the upright line the "
        said += f"median of the trials{_MEANS}; eager is the control of the same processes."
    if found.without_value:
        said += f" {units.plural(found.without_value, 'trial')} without a value left out."
    return said
