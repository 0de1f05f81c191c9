"""The pages of the dashboard that a report can be made of."""

from __future__ import annotations

from collections.abc import Callable

from dashboard.links.links import TITLES, Link, Page
from dashboard.pages.break_even import report as break_even
from dashboard.pages.cold_start import report as cold_start
from dashboard.pages.modes import report as modes
from dashboard.pages.overview import report as overview
from dashboard.pages.regressions import report as regressions
from dashboard.pages.runs import report as runs
from dashboard.pages.trends import report as trends
from dashboard.pages.trial import report as trial
from dashboard.read.snapshots import Snapshot
from dashboard.reports.content import Frozen, ReportError


def frozen(snapshot: Snapshot, link: Link) -> Frozen:
    """What the page of `link` shows. `link` has its machine and build resolved.

    Raises ReportError for a page that cannot be frozen, or that shows nothing under these filters.
    """
    if link.page not in _PAGES:
        raise ReportError(
            f"The page {TITLES[link.page]} cannot be frozen.", "Freeze a page that shows measurements."
        )
    return _PAGES[link.page](snapshot, link)


_PAGES: dict[Page, Callable[[Snapshot, Link], Frozen]] = {
    Page.OVERVIEW: overview.frozen,
    Page.TRENDS: trends.frozen,
    Page.MODES: modes.frozen,
    Page.BREAK_EVEN: break_even.frozen,
    Page.COLD_START: cold_start.frozen,
    Page.REGRESSIONS: regressions.frozen,
    Page.TRIAL: trial.frozen,
    Page.RUNS: runs.frozen,
}
FREEZABLE = frozenset({Page.UPGRADE, *_PAGES})
"""Pages that a report can be made of."""
