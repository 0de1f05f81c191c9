"""The script Streamlit runs for every view: which page, with which link, in which frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import streamlit as st

from dashboard import links
from dashboard.asked_links import settled
from dashboard.data import read_choices
from dashboard.links import TITLES, Link, Page, tab_title
from dashboard.snapshots import Snapshot
from dashboard.stored_views import why_not_opened
from dashboard.turns import TURNS
from dashboard.views import (
    break_even,
    cold_start,
    controls,
    guide,
    import_upload,
    live,
    modes,
    overview,
    regressions,
    reports,
    runs,
    share,
    shell,
    signed_in,
    trends,
    trial,
    upgrade,
)
from dashboard.views.elements import begin, nothing_measured
from db.errors import CompilewatchError

HERE = Path(__file__).parent

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
        with TURNS.take():
            _draw(page, pages)
    except CompilewatchError as error:
        shell.trouble(error)


def _draw(page: Page, pages: dict[Page, st.Page]) -> None:
    raw = {key: st.query_params.get_all(key) for key in st.query_params}
    asked, problems = links.read(page, raw)
    if kept := raw.get(links.STORED_VIEW):
        problems = (*problems, why_not_opened(kept[0]))
    begin()
    snapshot = Snapshot.now()
    seen = live.pulse(page, snapshot.version)
    choices = read_choices(snapshot)
    asked, unknown = settled(asked, snapshot, choices)
    controls.remember(asked)
    controls.register(pages)
    view = shell.look(asked, snapshot, choices)
    with st.sidebar:
        shell.navigation(pages, asked)
        shell.filters(view)
        signed_in.draw()
    beside_title = shell.header(view, (*problems, *unknown))
    if page is not Page.GUIDE:
        live.follow(page, seen)
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
    return st.Page(
        lambda: None,
        title=TITLES[page],
        icon=shell.ICONS[page],
        url_path=page.value or None,
        default=page is Page.OVERVIEW,
        help=shell.QUESTIONS[page],
    )


if __name__ == "__main__":
    main()
