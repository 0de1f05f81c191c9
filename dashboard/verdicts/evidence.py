"""The evidence of a verdict on one case: the trials of both sides, and every number with how sure it is."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.parts import Chart, Empty, Part, Table, TableColumn
from compilewatch.dashboard.text import theme
from compilewatch.dashboard.verdicts import evidence_charts as charts
from compilewatch.dashboard.verdicts.tables import Q_VALUE, SIDES, TRIALS, case_table, change_columns
from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.results import BuildSide, CaseKey, Row
from compilewatch.db.metrics.eligibility import passed_mask, timed_mask
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.vocabulary import Metric


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
    trials: pd.DataFrame,
    sides: Sequence[BuildSide],
    case: CaseKey,
    rows: Sequence[Row],
    metric: Metric,
    *,
    title: str,
    key: str,
    confidence: float | None,
) -> tuple[Part, ...]:
    """The `trials` on both `sides`, base first, of the `case` called `title`, and below them the numbers of
    the verdicts `rows` on it. `confidence` of their intervals; the parts have keys that begin with `key`.
    """
    of_sides = [charts.side_trials(trials, side, case) for side in sides]
    shown = charts.shown_metric(metric)
    # What counts in the verdict is drawn: else the mean of the points is not the number below them.
    counts = passed_mask if shown is Metric.PEAK_MEMORY else timed_mask
    strip = charts.frame([side[counts(side)] for side in of_sides], case, metric)
    alt = f"{METRICS[shown].name} of every trial of the base side and of the head side"
    drawn: Part = Empty(f"No trial of this case has a {METRICS[shown].word} to draw.")
    if not strip.empty:
        strategies = tuple(theme.ordered(strip["strategy"]))
        with_value = strip.loc[strip["strategy"] == case.strategy, "trial_id"].nunique()
        missing = sum(map(len, of_sides)) - with_value
        chart = ChartContent(
            f"{title}: the trials of both sides",
            charts.spec(lanes(strategies), strategies, shown),
            {"main": strip, "middles": charts.middles(strip)},
            [f"{units.plural(missing, 'trial')} without a value that counts left out."] if missing else [],
        )
        drawn = Chart(f"{key}-strip", alt, chart, explained=reading(shown))
    return (
        drawn,
        Table(
            f"{key}-numbers",
            "Every metric of this case on both sides, its change with interval, verdict and reason",
            case_table(rows),
            {
                "metric": TableColumn("Metric", pinned=True),
                **change_columns(confidence),
                "verdict": TableColumn("Verdict"),
                **SIDES,
                **parts.hidden({**Q_VALUE, "moved": TableColumn("Who moved"), **TRIALS}),
                "reason": TableColumn("Why", wide=True),
            },
        ),
    )
