"""Cold start as the parts of a report: bars of phases, four figures, and a row per case."""

from __future__ import annotations

from dashboard.links.links import Link
from dashboard.pages.cases import cases_of
from dashboard.pages.cold_start import content
from dashboard.read.snapshots import Snapshot
from dashboard.reports.content import Figures, Frozen
from dashboard.reports.tables import case_parts, charted, listed, of_cases, table_of
from db.wording.marks import BOUND_TITLE

_CASES = {"workload": "Workload", "strategy": "Strategy", **BOUND_TITLE, "cache": "Cache state"}


def frozen(snapshot: Snapshot, link: Link) -> Frozen:
    """What the page shows of one workload, or of all where the link names none."""
    cases = cases_of(snapshot, link)
    if link.focus in set(cases["workload_label"]):
        cases = cases[cases["workload_label"] == link.focus]
    if cases.empty:
        return of_cases((), cases, link)
    seen = content.page_content(snapshot, link)
    titles = content.TITLES
    parts = (
        Figures(figures=tuple((title, text) for title, text, _ in seen.figures)),
        *charted(
            seen.chart,
            caption="Medians over trials, phase by phase, from spawning the process to its first result.",
            alt="Phases from process start to first result, one stacked bar per case",
        ),
        table_of(seen.cases, _CASES | titles, title="From start to steady", numeric=titles),
        *listed("Beside the numbers", seen.beside),
        *case_parts(cases),
    )
    return of_cases(parts, cases, link)
