"""The pages of the dashboard that a report can be made of."""

from __future__ import annotations

from collections.abc import Callable

from dashboard.links.links import TITLES, Link, Page
from dashboard.pages.contents import CONTENTS
from dashboard.pages.parts import PageContent
from dashboard.pages.runs import report as runs
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
        content = page(snapshot, link)
        if not content.builds:
            raise nothing_fits()
        if link.focus not in (None, content.link.focus):
            raise ReportError(f"{link.focus} has nothing under these filters.", "Widen them, then freeze it.")
        return Frozen(
            sections((*content.parts, *content.appendix())), content.link, content.builds, content.data()
        )

    return frozen_page


_PAGES: dict[Page, Callable[[Snapshot, Link], Frozen]] = {
    **{page: _of(content) for page, content in CONTENTS.items()},
    Page.TRIAL: trial.frozen,
    Page.RUNS: runs.frozen,
}
FREEZABLE = frozenset({Page.UPGRADE, *_PAGES})
"""Pages that a report can be made of."""
