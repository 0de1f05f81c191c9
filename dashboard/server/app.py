"""The script Streamlit runs for every view: which page, with which link, in which frame."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import streamlit as st

from compilewatch.dashboard.http.turns import RENDER_LIMIT
from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import PAGES, Page, tab_title
from compilewatch.dashboard.pages.registry import REGISTRY
from compilewatch.dashboard.pages.runs import upload as import_upload
from compilewatch.dashboard.read.data import read_choices, read_regressions
from compilewatch.dashboard.read.requested import resolved_link
from compilewatch.dashboard.read.versions import drawn_version, one_version
from compilewatch.dashboard.render import controls, forms, shell
from compilewatch.dashboard.render.elements import begin, nothing_measured, said
from compilewatch.dashboard.reports import share
from compilewatch.dashboard.verdicts import inbox
from compilewatch.dashboard.write.writing import why_not_opened
from compilewatch.db.errors import CompilewatchError

HERE = Path(__file__).parents[1]


def main() -> None:
    # The icon first: without one `st.navigation` takes that of the page, which lies on a foreign host.
    st.set_page_config(page_icon=str(HERE / "favicon.svg"), layout="wide")
    pages = {page: _streamlit_page(page) for page in REGISTRY}
    page = Page(st.navigation(list(pages.values()), position="hidden").url_path)
    st.set_page_config(page_title=tab_title(page))
    try:
        with RENDER_LIMIT.take():
            _draw(page, pages)
    except CompilewatchError as error:
        shell.trouble(error)


@one_version()
def _draw(page: Page, pages: dict[Page, st.Page]) -> None:
    raw = {key: st.query_params.get_all(key) for key in st.query_params}
    link, problems = links.read(page, raw)
    if view_ids := raw.get(links.STORED_VIEW):
        problems = (*problems, why_not_opened(view_ids[0]))
    begin()
    pulse = shell.pulse(page, drawn_version())
    choices = read_choices()
    link, unknown, taken = resolved_link(link, choices)
    controls.remember(link)
    controls.register(pages)
    view = shell.resolved_view(link, choices)
    waiting = sum(each.is_open for each in inbox.changes(read_regressions()))
    shell.navigation(pages, link, waiting=waiting, empty=view.empty)
    beside_title = shell.header(view, (*problems, *unknown), taken)
    if page is not Page.GUIDE:
        shell.follow(page, pulse)
    if view.empty and page is not Page.GUIDE:
        nothing_measured()
        if page is Page.RUNS:
            forms.tell(import_upload.PAGE)
            import_upload.draw()
        shell.foot(pages)
        return
    shown = REGISTRY[page].draw(view)
    st.set_page_config(page_title=tab_title(page, said()))
    if page is not Page.GUIDE:
        with beside_title, st.container(horizontal=True, width="content"):
            share.draw(replace(view, link=shown))
    shell.foot(pages)


def _streamlit_page(page: Page) -> st.Page:
    entry = PAGES[page]
    return st.Page(
        lambda: None,
        title=entry.title,
        url_path=page.value or None,
        default=page is Page.OVERVIEW,
        help=entry.question,
    )


if __name__ == "__main__":
    main()
