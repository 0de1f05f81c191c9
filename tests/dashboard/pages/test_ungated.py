"""The first records of a GPU on every page and in every report: drawn, and called ungated."""

from pathlib import Path

import pytest

from dashboard.document.page import render
from dashboard.links.links import Link, Page, href
from dashboard.reports.freeze import freeze_link
from db.engine.session import open_database
from db.interchange.read.importing import import_paths
from tests.builders import START
from tests.dashboard.conftest import DATABASE, Store, opened, texts

H100 = Path(__file__).parents[3] / "docs" / "measured" / "h100"
WITHOUT_TIMES = {Page.REPORTS, Page.GUIDE}


@pytest.fixture(scope="module")
def url(store_once: Store) -> str:
    found = store_once([])
    with open_database(found) as database:
        assert import_paths(database, sorted(H100.glob("*.jsonl"))).new == 110
    return found


@pytest.fixture(autouse=True)
def _reads(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATABASE, url)


@pytest.mark.parametrize("page", list(Page))
def test_every_page_says_ungated(page: Page) -> None:
    test = opened(Link(page=page))
    assert [element.value for element in test.error] == []
    assert ("Ungated: CUDA events" in texts(test)) == (page not in WITHOUT_TIMES)


@pytest.mark.parametrize("page", [Page.OVERVIEW, Page.TRENDS])
def test_a_frozen_page_says_ungated(page: Page) -> None:
    content = freeze_link(href(Link(page=page)), title=None, by="ann", at=START)
    assert "Ungated: CUDA events" in render(content)
    assert "Ungated" not in content.title
