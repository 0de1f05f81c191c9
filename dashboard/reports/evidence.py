"""The evidence of a verdict on one case as the parts of a report."""

from __future__ import annotations

from dashboard import theme
from dashboard.charts import side_strips
from dashboard.charts.prepared import PreparedChart
from dashboard.prepared import case_evidence, case_series
from dashboard.prepared.case_evidence import Evidence
from dashboard.reports.cases import charted
from dashboard.reports.content import Section
from dashboard.reports.tables import table_of
from dashboard.snapshots import Snapshot
from dashboard.verdict_words import interval_title
from db.verdicts.results import CaseKey
from db.verdicts.vocabulary import Metric
from db.wording.metrics import METRICS


def evidence_parts(
    found: Evidence, metric: Metric, title: str, *, confidence: float | None
) -> tuple[Section, ...]:
    """The numbers of the case called `title`, and the trials of both sides. `confidence` of the intervals."""
    titles = case_evidence.TITLES | {"interval": interval_title(confidence)}
    table = table_of(found.table, titles, title=title, numeric=case_evidence.NUMBERS)
    if found.strip.empty:
        return (table,)
    shown = side_strips.shown_metric(metric)
    strategies = tuple(theme.ordered(found.strip["strategy"]))
    spec = side_strips.spec(case_evidence.lanes(strategies), strategies, shown)
    frames = {"main": found.strip, "middles": found.middles}
    return (
        table,
        *charted(
            PreparedChart(f"{title}: the trials of both sides", spec, frames),
            caption=case_evidence.reading(shown, found),
            alt=f"{METRICS[shown].name} of every trial of the base side and of the head side",
        ),
    )


def series_parts(
    snapshot: Snapshot, machine_id: str | None, case: CaseKey, metric: Metric
) -> tuple[Section, ...]:
    """The history of `case`; nothing for a figure without one, or where fewer than two points have it."""
    found = case_series.chart(snapshot, machine_id, case, metric.value)
    return () if found is None else charted(found, caption="", alt=found.finding)
