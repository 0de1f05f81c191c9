"""The pages: what each shows, and what draws it. A page is a folder beside this file and a line in it.

Its name, its question and its place in links stand in `PAGES` of `dashboard.links.links`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.break_even import content as break_even
from compilewatch.dashboard.pages.break_even import view as break_even_view
from compilewatch.dashboard.pages.cold_start import content as cold_start
from compilewatch.dashboard.pages.cold_start import view as cold_start_view
from compilewatch.dashboard.pages.guide import view as guide_view
from compilewatch.dashboard.pages.machines import content as machines
from compilewatch.dashboard.pages.machines import view as machines_view
from compilewatch.dashboard.pages.modes import content as modes
from compilewatch.dashboard.pages.modes import view as modes_view
from compilewatch.dashboard.pages.overview import content as overview
from compilewatch.dashboard.pages.overview import view as overview_view
from compilewatch.dashboard.pages.regressions import content as regressions
from compilewatch.dashboard.pages.regressions import view as regressions_view
from compilewatch.dashboard.pages.reports import content as reports
from compilewatch.dashboard.pages.reports import view as reports_view
from compilewatch.dashboard.pages.runs import content as runs
from compilewatch.dashboard.pages.runs import view as runs_view
from compilewatch.dashboard.pages.sizes import content as sizes
from compilewatch.dashboard.pages.sizes import view as sizes_view
from compilewatch.dashboard.pages.trial import content as trial
from compilewatch.dashboard.pages.trial import view as trial_view
from compilewatch.dashboard.pages.upgrade import content as upgrade
from compilewatch.dashboard.pages.upgrade import view as upgrade_view
from compilewatch.dashboard.pages.workload import content as workload
from compilewatch.dashboard.pages.workload import view as workload_view
from compilewatch.dashboard.parts.parts import PageContent
from compilewatch.dashboard.render.shell import View

Content = Callable[[Link], PageContent]
"""Of a link whose machine and build are resolved."""


class Registered(NamedTuple):
    """What draws a page and returns the link that it shows; what it shows, for reports and charts."""

    draw: Callable[[View], Link]
    content: Content | None


REGISTRY: dict[Page, Registered] = {
    Page.OVERVIEW: Registered(overview_view.draw, overview.page),
    Page.WORKLOAD: Registered(workload_view.draw, workload.page),
    Page.MODES: Registered(modes_view.draw, modes.page),
    Page.COLD_START: Registered(cold_start_view.draw, cold_start.page),
    Page.BREAK_EVEN: Registered(break_even_view.draw, break_even.page),
    Page.SIZES: Registered(sizes_view.draw, sizes.page),
    Page.MACHINES: Registered(machines_view.draw, machines.page),
    Page.UPGRADE: Registered(upgrade_view.draw, upgrade.newest_pair),
    Page.REGRESSIONS: Registered(regressions_view.draw, regressions.page),
    Page.TRIAL: Registered(trial_view.draw, trial.page),
    Page.RUNS: Registered(runs_view.draw, runs.page),
    Page.REPORTS: Registered(reports_view.draw, reports.page),
    Page.GUIDE: Registered(guide_view.draw, None),
}
CONTENTS: dict[Page, Content] = {page: each.content for page, each in REGISTRY.items() if each.content}
