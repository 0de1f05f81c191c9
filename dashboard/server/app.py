"""The script Streamlit runs for every view: which page, with which link, in which frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import streamlit as st

from dashboard.links import links
from dashboard.links.links import PAGES, Link, Page, tab_title
from dashboard.links.requested import resolved_link
from dashboard.links.stored_views import why_not_opened
from dashboard.pages.break_even import view as break_even
from dashboard.pages.cold_start import view as cold_start
from dashboard.pages.guide import view as guide
from dashboard.pages.modes import view as modes
from dashboard.pages.overview import view as overview
from dashboard.pages.regressions import view as regressions
from dashboard.pages.reports import share
from dashboard.pages.reports import view as reports
from dashboard.pages.runs import upload as import_upload
from dashboard.pages.runs import view as runs
from dashboard.pages.trends import view as trends
from dashboard.pages.trial import view as trial
from dashboard.pages.upgrade import view as upgrade
from dashboard.read.data import read_choices
from dashboard.read.snapshots import Snapshot
from dashboard.render import controls, shell
from dashboard.render.elements import begin, nothing_measured
from dashboard.render.limit import RENDER_LIMIT
from db.errors import CompilewatchError

HERE = Path(__file__).parents[1]

VIEWS: dict[Page, Callable[[shell.View], Link]] = {
    Page.OVERVIEW: overview.draw,
    Page.TRENDS: trends.draw,
    Page.UPGRADE: upgrade.draw,
    Page.MODES: modes.draw,
    Page.BREAK_EVEN: break_even.draw,
    Page.COLD_START: cold_start.draw,
    Page.REGRESSIONS: regressions.draw,
    Page.TRIAL: trial.draw,
    Page.RUNS: runs.draw,
    Page.REPORTS: reports.draw,
    Page.GUIDE: guide.draw,
}


def main() -> None:
    # The icon first: without one `st.navigation` takes that of the page, which lies on a foreign host.
    st.set_page_config(page_icon=str(HERE / "favicon.svg"), layout="wide")
    st.logo(str(HERE / "logo.svg"), size="large", icon_image=str(HERE / "favicon.svg"))
    pages = {page: _streamlit_page(page) for page in VIEWS}
    page = Page(st.navigation(list(pages.values()), position="hidden").url_path)
    st.set_page_config(page_title=tab_title(page))
    try:
        with RENDER_LIMIT.take():
            _draw(page, pages)
    except CompilewatchError as error:
        shell.trouble(error)


def _draw(page: Page, pages: dict[Page, st.Page]) -> None:
    raw = {key: st.query_params.get_all(key) for key in st.query_params}
    link, problems = links.read(page, raw)
    if view_ids := raw.get(links.STORED_VIEW):
        problems = (*problems, why_not_opened(view_ids[0]))
    begin()
    snapshot = Snapshot.now()
    pulse = shell.pulse(page, snapshot.version)
    choices = read_choices(snapshot)
    link, unknown = resolved_link(link, snapshot, choices)
    controls.remember(link)
    controls.register(pages)
    view = shell.resolved_view(link, snapshot, choices)
    with st.sidebar:
        shell.navigation(pages, link)
        shell.filters(view)
        shell.draw()
    beside_title = shell.header(view, (*problems, *unknown))
    if page is not Page.GUIDE:
        shell.follow(page, pulse)
    if view.empty and page is not Page.GUIDE:
        nothing_measured()
        if page is Page.RUNS:
            import_upload.draw()
        return
    shown = VIEWS[page](view)
    if page is not Page.GUIDE:
        with beside_title:
            share.draw(replace(view, link=shown))


def _streamlit_page(page: Page) -> st.Page:
    entry = PAGES[page]
    return st.Page(
        lambda: None,
        title=entry.title,
        icon=entry.icon,
        url_path=page.value or None,
        default=page is Page.OVERVIEW,
        help=entry.question,
    )


if __name__ == "__main__":
    main()
