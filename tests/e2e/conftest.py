"""Served dashboards for all browser tests and a browser for each file; they skip where Chromium is absent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from playwright.sync_api import Page as Tab

from tests.dashboard.conftest import empty_url, filled_url, recorded_url
from tests.dashboard.serving import Served, served
from tests.e2e.browser import Trouble, new_page

__all__ = ["empty_url", "filled_url", "recorded_url"]


@pytest.fixture(scope="session")
def recorded_server(recorded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With recorded regressions and reports, so that every page has something to show."""
    with served(recorded_url, tmp_path_factory.mktemp("e2e") / "recorded.log") as running:
        yield running


@pytest.fixture(scope="module")
def _tab(browser: Browser, recorded_server: Served) -> Iterator[tuple[Tab, Trouble]]:
    with new_page(browser, recorded_server.origin) as opened:
        yield opened


@pytest.fixture
def tab(_tab: tuple[Tab, Trouble]) -> Iterator[Tab]:
    """A page of `recorded_server` in which tests of a file open one view after another, without trouble.

    The first view of a fresh browser costs three times as much.
    """
    page, trouble = _tab
    trouble.found.clear()
    yield page
    assert trouble.found == []
