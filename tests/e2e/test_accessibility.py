"""Every page opens without trouble, and for people who see little: axe-core, and faint text in charts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

from compilewatch.dashboard.links.links import Link, Page, heading, href
from tests.dashboard.serving import Served, served
from tests.e2e.axe import axe_source, faint, serious
from tests.e2e.browser import new_page, open_at
from tests.e2e.look import FAULTS, Shot, shots

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def axe() -> str:
    return axe_source()


Look = tuple[int, str]
_NAMED = re.compile(r".+ · compilewatch$")


_SCHEME = "() => matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'"
_GROUND = "() => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"


def _put_on(page: Tab, look: Look) -> None:
    """Give the open page another width and the other scheme, and wait until it is painted so."""
    before = page.evaluate(_GROUND)
    page.set_viewport_size({"width": look[0], "height": 900})
    page.emulate_media(color_scheme=look[1])  # type: ignore[arg-type]
    page.wait_for_function(f"before => ({_GROUND})() !== before", arg=before)
    page.wait_for_timeout(500)


def _wrong(page: Tab, axe: str) -> list[str]:
    return [*serious(page, axe), *faint(page), *page.evaluate(FAULTS)]


def _wrong_once_laid_out(page: Tab, axe: str) -> list[str]:
    """What is wrong and stays so: after a change of size a busy machine takes its time to lay out charts."""
    for _ in range(3):
        if not (found := _wrong(page, axe)):
            return []
        page.wait_for_timeout(2_000)
    return found


def _check(
    shown: Iterable[Shot], page: Tab, origin: str, axe: str, *, other: Look | None = None
) -> list[str]:
    """What is wrong with each view as it opens, and once it is put on another look and back for the next."""
    found = []
    size = page.viewport_size
    looks = [(size["width"], str(page.evaluate(_SCHEME))), other] if other else []
    for shot in shown:
        open_at(page, f"{origin}/{href(shot.link)}", shot.title)
        expect(page).to_have_title(_NAMED)
        headline = page.title().removesuffix(" · compilewatch")
        if headline != shot.title:
            expect(page.get_by_test_id("stMain").get_by_text(headline).first).to_be_visible()
        if shot.link == Link(page=shot.link.page):
            for alert in ("stAlertContentError", "stAlertContentWarning"):
                expect(page.get_by_test_id(alert)).to_have_count(0)
        wrong = _wrong(page, axe)
        if looks:
            looks.reverse()
            _put_on(page, looks[0])
            wrong += _wrong_once_laid_out(page, axe)
        found += [f"{shot.name}: {line}" for line in wrong]
    return found


def test_no_page_has_trouble_anything_serious_or_faint_text(
    browser: Browser, recorded_server: Served, recorded_url: str, axe: str
) -> None:
    """Every tenth view at 1440 in light, and every tenth at 390 in dark."""
    found: list[str] = []
    views = list(shots(recorded_url))
    for looks, shown in zip(((1440, "light"), (390, "dark")), (views[::10], views[5::10]), strict=True):
        with new_page(browser, recorded_server.origin, width=looks[0], scheme=looks[1]) as (page, trouble):
            found += _check(shown, page, recorded_server.origin, axe)
            assert trouble.found == []
    assert found == [], "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("opened", "other"), [((1440, "light"), (390, "dark")), ((1440, "dark"), (390, "light"))]
)
def test_every_view_in_every_look(
    browser: Browser, recorded_server: Served, recorded_url: str, axe: str, opened: Look, other: Look
) -> None:
    """Every view is opened in one look and put on the other, the next the other way round."""
    with new_page(browser, recorded_server.origin, width=opened[0], scheme=opened[1]) as (page, trouble):
        found = _check(shots(recorded_url), page, recorded_server.origin, axe, other=other)
        assert trouble.found == []
    assert found == [], "\n".join(found)


@pytest.mark.slow
def test_an_empty_database_has_no_faint_text(
    browser: Browser, empty_url: str, axe: str, tmp_path: Path
) -> None:
    with served(empty_url, tmp_path / "log") as server, new_page(browser, server.origin) as (page, _):
        open_at(page, f"{server.origin}/", heading(Page.OVERVIEW))
        assert serious(page, axe) == []


def test_axe_would_find_something(browser: Browser, axe: str) -> None:
    with new_page(browser, "data:") as (page, _):
        page.set_content("<html lang=en><title>t</title><img src='data:,'><p style='color:#ccc'>pale</p>")
        found = " ".join(serious(page, axe))
        page.set_content(
            "<svg class=marks style='background:#fff'><rect width=100 height=20 fill='#777' y=30 />"
            "<text y=12 fill='#808495'>grey</text><text y=45 x=9 fill='#333'>mark</text>"
            "<text y=70>black</text></svg>"
        )
        pale = faint(page)
    # By hand: #808495 on white 1.05 / (0.2323 + 0.05), #333 on #777 (0.1845 + 0.05) / (0.0331 + 0.05).
    assert pale == ["chart text: grey: contrast 3.72", "chart text: mark: contrast 2.82"]
    assert "image-alt" in found
    assert "color-contrast" in found
