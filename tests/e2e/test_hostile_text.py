"""Texts that try to be more than text: on no page does one run, load, break it or leave its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

from compilewatch.dashboard.links.links import Link, Page, heading, href, page_named
from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.service.reports import store_view
from tests.builders import START
from tests.dashboard.serving import Served, served
from tests.e2e.browser import new_page, open_at, visit
from tests.e2e.hostile import FOREIGN, LONG, NAMES, fill

pytestmark = pytest.mark.browser

# What went wrong on a page, in words; texts in canvases (tables) and drawings have bounds of their own.
_WRONG = """
(foreign) => {
    const wrong = [];
    const place_of = (part) => {
        const found = part.closest("[class*=st-key-]") || part.closest("[data-testid]");
        return `${found.className} ${found.dataset.testid}: ${part.parentElement.textContent.slice(0, 40)}`;
    };
    if (window.ran !== undefined) wrong.push("a script ran");
    for (const part of document.querySelectorAll("[src], [href], [srcset]")) {
        const names = ["src", "href", "xlink:href", "srcset"];
        const where = names.map((name) => part.getAttribute(name) || "").join(" ").trim();
        if (where.includes(foreign) || where.toLowerCase().includes("javascript:"))
            wrong.push(`${part.tagName} leads to ${where}: ${place_of(part)}`);
    }
    for (const part of document.querySelectorAll("*"))
        for (const name of part.getAttributeNames())
            if (name.startsWith("on")) wrong.push(`${part.tagName} has ${name}`);
    const page = document.documentElement;
    if (page.scrollWidth > page.clientWidth) wrong.push(`the page is ${page.scrollWidth} px wide`);
    const scrolls = (part) => {
        const above = part.parentElement;
        if (above === null || above.dataset.testid === "stMain") return false;
        const inside = above.getBoundingClientRect().right <= page.clientWidth + 1;
        return (inside && /auto|scroll|hidden/.test(getComputedStyle(above).overflowX)) || scrolls(above);
    };
    const places = "[data-testid=stMarkdownContainer], [data-testid=stMetric], [data-testid=stAlert], button";
    for (const place of document.querySelectorAll(`[data-testid=stMain] :is(${places})`)) {
        const right = place.getBoundingClientRect().right;
        // What is folded is laid out once somebody opens it.
        if (right > page.clientWidth + 1 && place.checkVisibility() && !scrolls(place))
            wrong.push(`${place.innerText.slice(0, 60)} ends at ${right} px`);
    }
    for (const place of document.querySelectorAll("[data-testid=stMarkdownContainer], h1, h2, h3, h4"))
        if (/[\\u202a-\\u202e\\u2066-\\u2069]/.test(place.textContent))
            wrong.push(`its direction turns: ${place.textContent.slice(0, 60)}`);
    return wrong;
}
"""


@pytest.fixture(scope="module")
def hostile_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('hostile') / 'hostile.db'}"
    fill(url)
    return url


@pytest.fixture(scope="module")
def server(hostile_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(hostile_url, tmp_path_factory.mktemp("hostile") / "log") as running:
        yield running


def _views(url: str) -> list[Link]:
    """Every page, and what opens on it."""
    with open_database(url, read_only=True) as database:
        trials = trials_frame(database)
        chosen = standing_regressions(database)[0].regression.regression_id
    failed = trials[trials["status"] == "failed"].iloc[-1]
    passed = trials[trials["strategy_kind"] == "compile"].iloc[-1]
    return [
        *(Link(page=page) for page in Page),
        Link(page=Page.WORKLOAD, focus=NAMES[1], metric="latency"),
        Link(page=Page.UPGRADE, focus=NAMES[2], focus_strategy=NAMES[0]),
        Link(page=Page.WORKLOAD, axis="torch", workload=(NAMES[2],), strategy=(NAMES[0],)),
        Link(page=Page.TRIAL, trial=str(failed["trial_id"])),
        Link(page=Page.REGRESSIONS, regression=(chosen,)),
        Link(page=Page.TRIAL, trial=str(passed["trial_id"])),
    ]


def _wrong(page: Tab) -> Any:
    return page.evaluate(_WRONG, FOREIGN)


def _wrong_once_laid_out(page: Tab) -> Any:
    """What is wrong and stays so: after a change of size a busy machine takes its time to lay out tables."""
    for _ in range(60):
        page.wait_for_timeout(100)
        if not (found := _wrong(page)):
            return []
    return found


EVERY = pytest.param(1, marks=pytest.mark.slow)


@pytest.mark.parametrize("nth", [8, EVERY])
def test_nothing_runs_loads_or_leaves_its_place(
    browser: Browser, server: Served, hostile_url: str, nth: int
) -> None:
    wrong: dict[str, Any] = {}
    with new_page(browser, server.origin) as (page, trouble):
        open_at(page, f"{server.origin}/guide", heading(Page.GUIDE))
        before = Page.GUIDE
        for link in list(_views(hostile_url))[::nth]:
            page.set_viewport_size({"width": 1440, "height": 900})
            go_to = open_at if heading(link.page) == heading(before) else visit
            go_to(page, f"{server.origin}/{href(link)}", heading(link.page))
            before = link.page
            expect(page.get_by_text("This page failed")).to_have_count(0)
            found = [f"1440 px: {each}" for each in _wrong(page)]
            page.set_viewport_size({"width": 390, "height": 844})
            found += [f"390 px: {each}" for each in _wrong_once_laid_out(page)]
            if found:
                wrong[f"{link.page or 'overview'} {link.focus or link.trial or ''}"] = found[:8]
        assert wrong == {}
        assert trouble.found == []


_STORED_VIEWS = (
    f"javascript:window.ran=1//?{NAMES[0]}",
    f"//{FOREIGN.partition('//')[2]}/trends",
    "//[",
    "trends?embed=true&EMBED_OPTIONS=x&view=itself",
    f"trends?{urlencode({'focus': NAMES[0], 'workload': LONG, NAMES[1]: NAMES[2]})}",
    f"modes?{urlencode([('workload', name) for name in NAMES])}&goal={quote(LONG)}",
    "trends?focus=%ED%A0%80&since=%00",
)


@pytest.mark.parametrize("nth", [4, EVERY])
def test_stored_views_are_followed_as_text(
    browser: Browser, server: Served, hostile_url: str, nth: int
) -> None:
    links = _STORED_VIEWS[::nth]
    with open_database(hostile_url) as database:
        ids = [store_view(database, link, at=START, by=NAMES[0]) for link in links]
    wrong: dict[str, Any] = {}
    with new_page(browser, server.origin) as (page, trouble):
        for view_id, link in zip(ids, links, strict=True):
            known = page_named(link.partition("?")[0]) or Page.OVERVIEW
            open_at(page, f"{server.origin}/?view={view_id}", heading(known))
            expect(page.get_by_text("This page failed")).to_have_count(0)
            if "embed" not in link:
                expect(page.get_by_test_id("stAlert").first).to_be_visible()
            if found := _wrong(page):
                wrong[link] = found
        assert wrong == {}
        assert trouble.found == []


def test_the_check_notices_what_it_looks_for(browser: Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        f'<div data-testid="stMain"><p data-testid="stMarkdownContainer">\u202eturned</p>'
        f'<a href="{FOREIGN}/x">x</a><p onclick="1" style="width:3000px">wide</p></div>'
        "<script>window.ran = 1</script>"
    )
    with new_page(browser, "file://") as (page, _):
        page.goto(bad.as_uri())
        found = " ".join(_wrong(page))
    for word in ("a script ran", "leads to", "has onclick", "px wide", "direction turns"):
        assert word in found
