"""Served dashboards for all browser tests and a browser for each file; they skip where Chromium is absent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.dashboard.conftest import filled_url, recorded_url
from tests.dashboard.serving import Served, served
from tests.e2e.browser import CHROMIUM, INSTALL, chromium

__all__ = ["filled_url", "recorded_url"]


@pytest.fixture(scope="session")
def dashboard_server(filled_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(filled_url, tmp_path_factory.mktemp("e2e") / "log") as running:
        yield running


@pytest.fixture(scope="session")
def recorded_server(recorded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The same with recorded regressions and reports, so that every page has something to show."""
    with served(recorded_url, tmp_path_factory.mktemp("e2e") / "recorded.log") as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Ends with its file: until then Playwright has a loop running, and `asyncio.run` takes no second one."""
    if not CHROMIUM.exists():
        pytest.skip(f"needs Chromium; as root: {INSTALL}")
    with chromium() as running:
        yield running
