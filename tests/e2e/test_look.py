"""Every page, wide and narrow, light and dark: nothing that a machine can see is wrong with its picture."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from compilewatch.dashboard.links.links import Page
from compilewatch.dashboard.read.database import close_databases
from tests.dashboard.serving import Served, served
from tests.e2e import busy
from tests.e2e.browser import new_page
from tests.e2e.look import FAULTS, RECORDED, SCHEMES, SCREENS, WIDTHS, photograph, recorded, shots

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def busy_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('busy') / 'busy.db'}"
    busy.fill(url, datetime.now(UTC))
    close_databases()
    return url


@pytest.fixture(scope="module")
def server(busy_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(busy_url, tmp_path_factory.mktemp("busy") / "log") as running:
        yield running


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_page_has_a_fault_that_a_machine_can_see(
    browser: Browser, server: Served, busy_url: str, width: int, scheme: str
) -> None:
    wanted = shots(busy_url)
    assert {shot.link.page for shot in wanted} == set(Page)
    assert photograph(browser, server.origin, wanted, SCREENS / "busy", width, scheme) == {}


@pytest.mark.parametrize("name", RECORDED)
def test_no_page_over_a_recorded_history_has_a_fault_or_speaks_on_the_console(
    browser: Browser, tmp_path: Path, name: str
) -> None:
    url = f"sqlite:///{tmp_path / 'results.db'}"
    recorded(name, url)
    with served(url, tmp_path / "log") as server:
        assert photograph(browser, server.origin, shots(url), tmp_path, 1440, "light") == {}


def test_a_warning_on_the_console_is_trouble(browser: Browser) -> None:
    """As Vega says what it cannot scale."""
    with new_page(browser, "data:") as (page, trouble):
        page.evaluate("console.warn('WARN', 'Infinite extent for field \"x\": [Infinity, -Infinity]')")
        page.evaluate("console.info('nothing')")
        page.wait_for_timeout(100)
    assert ["Infinite extent" in each for each in trouble.found] == [True]


def test_faults_are_noticed(browser: Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        '<body style="margin:0"><div data-testid="stMain" style="overflow:auto"><p style="width:3000px">None'
        '</p><div data-testid="stVegaLiteChart" style="width:500px"><svg width="100"></svg></div></div>'
    )
    with new_page(browser, "file://") as (page, _):
        page.goto(bad.as_uri())
        found = " ".join(page.evaluate(FAULTS))
    for words in ("its content is 3000 px wide", "it is empty", "it says None", "does not fill its place"):
        assert words in found
