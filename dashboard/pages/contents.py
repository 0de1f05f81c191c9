"""What each page shows, by page: for reports, embeds and pictures of charts.

A new page also stands in `PAGES` of `dashboard.links.links` and in `VIEWS` of `dashboard.server.app`.
"""

from __future__ import annotations

from collections.abc import Callable

from dashboard.links.links import Link, Page
from dashboard.pages.break_even import content as break_even
from dashboard.pages.cold_start import content as cold_start
from dashboard.pages.modes import content as modes
from dashboard.pages.overview import content as overview
from dashboard.pages.parts import Empty, PageContent
from dashboard.pages.regressions import content as regressions
from dashboard.pages.reports import content as reports
from dashboard.pages.runs import content as runs
from dashboard.pages.trends import content as trends
from dashboard.pages.trial import content as trial
from dashboard.pages.upgrade import content as upgrade
from dashboard.pages.upgrade.pair import with_builds
from dashboard.read.snapshots import Snapshot


def _upgrade(snapshot: Snapshot, link: Link) -> PageContent:
    """Of the two builds that the page opens with. Raises VerdictError where they cannot be compared."""
    link = with_builds(snapshot, link)
    if link.base and link.head:
        return upgrade.page(snapshot, link)
    return PageContent((Empty("Under these filters fewer than two builds were measured."),), link)


CONTENTS: dict[Page, Callable[[Snapshot, Link], PageContent]] = {
    Page.OVERVIEW: overview.page,
    Page.TRENDS: trends.page,
    Page.UPGRADE: _upgrade,
    Page.MODES: modes.page,
    Page.BREAK_EVEN: break_even.page,
    Page.COLD_START: cold_start.page,
    Page.REGRESSIONS: regressions.page,
    Page.TRIAL: trial.page,
    Page.RUNS: runs.page,
    Page.REPORTS: reports.page,
}
"""Of a link whose machine and build are resolved."""
