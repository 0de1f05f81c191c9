"""Every page for people who cannot see it or hold no mouse: what axe-core finds."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from dashboard.links.links import TITLES, Page
from tests.dashboard.serving import Served
from tests.e2e.axe import axe_source, serious
from tests.e2e.browser import new_page, open_at

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def axe() -> str:
    return axe_source()


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1440, "light"),
        pytest.param(1440, "dark", marks=pytest.mark.slow),
        pytest.param(390, "light", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_nothing_serious_on_any_page(
    browser: Browser, recorded_server: Served, axe: str, width: int, scheme: str
) -> None:
    found: dict[str, list[str]] = {}
    with new_page(browser, recorded_server.origin, width=width, scheme=scheme) as (page, _):
        for target in Page:
            open_at(page, f"{recorded_server.origin}/{target.value}", TITLES[target])
            if wrong := serious(page, axe):
                found[TITLES[target]] = wrong
    assert found == {}, "\n".join(line for lines in found.values() for line in lines)


def test_axe_would_find_something(browser: Browser, axe: str) -> None:
    with new_page(browser, "data:") as (page, _):
        page.set_content("<html lang=en><title>t</title><img src='data:,'><p style='color:#ccc'>pale</p>")
        found = " ".join(serious(page, axe))
    assert "image-alt" in found
    assert "color-contrast" in found
