"""The pages of the dashboard that a report can be made of."""

from __future__ import annotations

from collections.abc import Callable

from dashboard.links.links import TITLES, Link, Page
from dashboard.pages.break_even import content as break_even
from dashboard.pages.cold_start import content as cold_start
from dashboard.pages.modes import content as modes
from dashboard.pages.overview import content as overview
from dashboard.pages.parts import PageContent
from dashboard.pages.regressions import content as regressions
from dashboard.pages.runs import report as runs
from dashboard.pages.trends import content as trends
from dashboard.pages.trial import report as trial
from dashboard.read.snapshots import Snapshot
from dashboard.reports.content import Frozen, ReportError, nothing_fits
from dashboard.reports.sections import sections


def frozen(snapshot: Snapshot, link: Link) -> Frozen:
    """What the page of `link` shows. `link` has its machine and build resolved.

    Raises ReportError for a page that cannot be frozen, or that shows nothing under these filters.
    """
    if link.page not in _PAGES:
        raise ReportError(
            f"The page {TITLES[link.page]} cannot be frozen.", "Freeze a page that shows measurements."
        )
    return _PAGES[link.page](snapshot, link)


def _of(page: Callable[[Snapshot, Link], PageContent]) -> Callable[[Snapshot, Link], Frozen]:
    """The report of a page: its parts, and its appendix. It shows the workload that was asked for or none."""

    def frozen_page(snapshot: Snapshot, link: Link) -> Frozen:
        found = page(snapshot, link)
        if not found.builds:
            raise nothing_fits()
        if link.focus not in (None, found.link.focus):
            raise ReportError(f"{link.focus} has nothing under these filters.", "Widen them, then freeze it.")
        return Frozen(sections((*found.parts, *found.appendix())), found.link, found.builds, found.data())

    return frozen_page


_PAGES: dict[Page, Callable[[Snapshot, Link], Frozen]] = {
    Page.OVERVIEW: _of(overview.page),
    Page.TRENDS: _of(trends.page),
    Page.MODES: _of(modes.page),
    Page.BREAK_EVEN: _of(break_even.page),
    Page.COLD_START: _of(cold_start.page),
    Page.REGRESSIONS: _of(regressions.page),
    Page.TRIAL: trial.frozen,
    Page.RUNS: runs.frozen,
}
FREEZABLE = frozenset({Page.UPGRADE, *_PAGES})
"""Pages that a report can be made of."""
