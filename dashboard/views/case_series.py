"""The history of one case on its machine, beside the evidence of a verdict on it."""

from __future__ import annotations

from dashboard.prepared.case_series import chart
from dashboard.snapshots import Snapshot
from dashboard.views import elements
from db.verdicts.results import CaseKey
from db.verdicts.vocabulary import Metric


def draw(snapshot: Snapshot, machine_id: str | None, case: CaseKey, metric: Metric, *, key: str) -> None:
    """Nothing for a figure without a history, or where fewer than two of its points have it."""
    found = chart(snapshot, machine_id, case, metric.value)
    if found is None or found.spec is None:
        return
    reading, *said = found.notes
    elements.note(reading)
    elements.chart(found.spec, found.frames, key=key, alt=found.finding)
    elements.notes(said)
