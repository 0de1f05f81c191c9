"""What the page Upgrade shows beside its comparison, for a report: a case in focus, decisions, the inbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from dashboard import inbox, links, verdict_words
from dashboard.data import filters_of, read_regressions, read_trials
from dashboard.database import reader
from dashboard.links import Link, Page, judged_metric
from dashboard.prepared.case_evidence import evidence
from dashboard.reports.comparison import Beside
from dashboard.reports.content import Lines, Section
from dashboard.reports.evidence import evidence_parts, series_parts
from dashboard.snapshots import Snapshot
from db.queries.sign_offs import sign_offs
from db.verdicts.results import Comparison
from db.wording.marks import bound_word


def beside(
    snapshot: Snapshot, link: Link, comparison: Comparison, labels: Mapping[str, str], differs: pd.DataFrame
) -> Beside:
    """Of the upgrade that `link` names. `labels`: workload id -> label; `differs` as `Beside` has it."""
    recorded = links.move(link, Page.REGRESSIONS, base=link.base, head=link.head)
    return Beside(
        differs=differs,
        signed=sign_offs(reader(), str(link.machine), str(link.base), str(link.head)),
        recorded=inbox.chosen(read_regressions(snapshot), recorded),
        in_focus=_in_focus(snapshot, link, comparison, labels),
    )


def _in_focus(
    snapshot: Snapshot, link: Link, comparison: Comparison, labels: Mapping[str, str]
) -> tuple[Section, ...]:
    """Both sides of the case that `link` is about."""
    if link.focus is None:
        return ()
    title = f"{link.focus} with {link.focus_strategy or 'any strategy'}"
    asked = (link.focus, link.focus_strategy)
    rows = [
        row
        for row in comparison.rows
        if (verdict_words.workload_label(row.case, labels), row.strategy) == asked
    ]
    if not rows:
        left_out = [
            case
            for case in comparison.left_out
            if (verdict_words.left_out_label(case), case.strategy) == asked
        ]
        said = [f"Left out of the comparison, {case.verdict}: {case.reason}" for case in left_out]
        return (Lines(title=title, lines=tuple(said) or (f"{title} is no case of this comparison.",)),)
    filters = replace(filters_of(link), builds=(str(link.base), str(link.head)))
    metric, sides = judged_metric(link), (comparison.base, comparison.head)
    found = evidence(read_trials(snapshot, filters), sides, rows[0].case, rows, metric)
    title = ", ".join(filter(None, (title, bound_word(rows[0].bound))))
    parts = evidence_parts(found, metric, title, confidence=comparison.policy.confidence)
    return parts + series_parts(snapshot, link.machine, rows[0].case, metric)
