"""The evidence of a verdict on one case as the parts of a report."""

from __future__ import annotations

from dashboard.charts.style import PreparedChart
from dashboard.pages.evidence import charts, content
from dashboard.pages.evidence.content import Evidence
from dashboard.read.snapshots import Snapshot
from dashboard.render import theme
from dashboard.render.verdict_words import interval_title
from dashboard.reports.content import Section
from dashboard.reports.tables import charted, table_of
from db.judge.results import CaseKey
from db.judge.vocabulary import Metric
from db.wording.metrics import METRICS


def evidence_parts(
    found: Evidence, metric: Metric, title: str, *, confidence: float | None
) -> tuple[Section, ...]:
    """The numbers of the case called `title`, and the trials of both sides. `confidence` of the intervals."""
    titles = content.TITLES | {"interval": interval_title(confidence)}
    table = table_of(found.table, titles, title=title, numeric=content.NUMBERS)
    if found.strip.empty:
        return (table,)
    shown = charts.shown_metric(metric)
    strategies = tuple(theme.ordered(found.strip["strategy"]))
    spec = charts.spec(content.lanes(strategies), strategies, shown)
    frames = {"main": found.strip, "middles": found.middles}
    return (
        table,
        *charted(
            PreparedChart(f"{title}: the trials of both sides", spec, frames),
            caption=content.reading(shown, found),
            alt=f"{METRICS[shown].name} of every trial of the base side and of the head side",
        ),
    )


def series_parts(
    snapshot: Snapshot, machine_id: str | None, case: CaseKey, metric: Metric
) -> tuple[Section, ...]:
    """The history of `case`; nothing for a figure without one, or where fewer than two points have it."""
    found = content.chart(snapshot, machine_id, case, metric.value)
    return () if found is None else charted(found, caption="", alt=found.finding)
