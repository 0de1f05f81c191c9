"""What readers share and see at once: new results, short links, reports, files, a path behind a proxy."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from compilewatch.db.engine.session import open_database
from compilewatch.db.service.reports import store_view
from compilewatch.db.store.trials import save_trials
from tests.builders import START, make_history
from tests.dashboard.reverse_proxy import proxied
from tests.dashboard.serving import Served, served
from tests.e2e.browser import Trouble, new_page, open_at, settle

pytestmark = pytest.mark.browser
LIVE_WITHIN_MS = 15_000


@dataclass(frozen=True)
class Desk:
    """A dashboard over a database of its own, which a test may write to."""

    served: Served
    url: str


@pytest.fixture(scope="module")
def desk(filled_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("sharing")
    copy = folder / "copy.db"
    shutil.copyfile(filled_url.removeprefix("sqlite:///"), copy)
    with served(f"sqlite:///{copy}", folder / "log", "--base-path", "/team/cw") as running:
        yield Desk(running, f"sqlite:///{copy}")


@pytest.fixture(scope="module")
def _desk_tab(browser: Browser, desk: Desk) -> Iterator[tuple[Page, Trouble]]:
    with new_page(browser, desk.served.origin) as opened:
        yield opened


@pytest.fixture
def page(_desk_tab: tuple[Page, Trouble]) -> Iterator[Page]:
    """Opens one view after another, in which nothing may go wrong."""
    tab, trouble = _desk_tab
    trouble.found.clear()
    yield tab
    assert trouble.found == []


def popover(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    expect(page.get_by_test_id("stPopoverBody")).to_be_visible()


def shared_text(page: Page, containing: str) -> str:
    code = page.get_by_test_id("stPopoverBody").get_by_test_id("stCode").filter(has_text=containing).first
    expect(code).to_be_visible()
    return code.inner_text().strip()


@pytest.mark.slow
def test_the_charts_of_a_page_have_addresses_to_paste(page: Page, desk: Desk) -> None:
    base = f"{desk.served.origin}/team/cw"
    open_at(page, f"{base}/modes?goal=memory", "Models")
    popover(page, "Share")
    page.get_by_text("Charts by address").click()
    for kind in ("svg", "png"):
        address = shared_text(page, f"modes-map.{kind}")
        assert address.startswith(f"{base}/chart/modes/modes-map.{kind}?")
        assert "goal=memory" in address
        assert desk.served.get(address.removeprefix(desk.served.origin)).status == 200
    framed = html.unescape(shared_text(page, "<iframe").split('"')[1])
    assert framed.startswith(f"{base}/embed/modes/modes-map?")
    assert b"<svg" in desk.served.get(framed.removeprefix(desk.served.origin)).body


def test_an_open_page_shows_new_results_and_keeps_what_was_chosen(page: Page, desk: Desk) -> None:
    open_at(page, f"{desk.served.origin}/trends?focus=bert-base", "Models")
    page.get_by_role("radio", name="Speedup", exact=True).click()
    expect(page.get_by_text("Speedup of every strategy")).to_be_visible()
    version = page.get_by_text("data version").first
    before = version.inner_text()
    main = page.get_by_test_id("stMain")
    main.evaluate("element => element.scrollTo(0, 300)")
    place = main.evaluate("element => element.scrollTop")
    with open_database(desk.url) as database:
        save_trials(database, make_history(workloads=("bert-base",), builds=("2.14.0",), start=START, seed=9))
    expect(version).not_to_have_text(before, timeout=LIVE_WITHIN_MS)
    expect(page.get_by_text(re.compile("torch 2.14.0")).first).to_be_attached()
    expect(page.get_by_role("radio", name="Speedup", exact=True)).to_be_checked()
    expect(page).to_have_url(re.compile("metric=speedup"))
    assert main.evaluate("element => element.scrollTop") == place


def test_a_short_link_opens_the_same_view_in_a_fresh_browser(
    browser: Browser, page: Page, desk: Desk
) -> None:
    open_at(page, f"{desk.served.origin}/modes?goal=memory&workload=mlp&workload=bert-base", "Models")
    popover(page, "Share")
    page.get_by_role("button", name="Short link").click()
    link = shared_text(page, "?view=")
    assert re.fullmatch(rf"{desk.served.origin}/\?view=[a-z2-7]{{12}}", link)
    with new_page(browser, desk.served.origin) as (fresh, trouble):
        fresh.goto(link)
        settle(fresh, "Models")
        expect(fresh.get_by_role("radio", name="Memory")).to_be_checked()
        expect(fresh).to_have_url(re.compile("workload=mlp&workload=bert-base"))
        expect(fresh.get_by_test_id("stAlert")).to_have_count(0)
        open_at(fresh, f"{desk.served.origin}/?view=nothing", "Today")
        expect(fresh.get_by_test_id("stAlert")).to_contain_text("No view has the id “nothing”")
        assert trouble.found == []


@pytest.mark.slow
def test_back_from_a_short_link_leads_to_where_the_reader_was(page: Page, desk: Desk) -> None:
    with open_database(desk.url) as database:
        view_id = store_view(database, "modes?workload=mlp&goal=memory", at=START, by=None)
    below = f"{desk.served.origin}/team/cw"
    open_at(page, f"{below}/guide", "Guide")
    open_at(page, f"{below}/?view={view_id}", "Models")
    expect(page).to_have_url(f"{below}/modes?workload=mlp&goal=memory")
    expect(page.get_by_role("radio", name="Memory")).to_be_checked()
    page.go_back()
    settle(page, "Guide")
    expect(page).to_have_url(f"{below}/guide")
    page.go_forward()
    settle(page, "Models")
    expect(page).to_have_url(f"{below}/modes?workload=mlp&goal=memory")
    expect(page.get_by_test_id("stAlert")).to_have_count(0)


def test_a_view_is_frozen_found_opened_and_revoked(page: Page, desk: Desk) -> None:
    open_at(page, f"{desk.served.origin}/break-even?focus=bert-base", "Models")
    popover(page, "Share")
    page.get_by_role("textbox", name="Title").fill("Is it worth it?")
    page.get_by_role("textbox", name="Your name").fill("Ann")
    page.get_by_role("button", name="Freeze").click()
    address = shared_text(page, "/report/")
    # Both are in sight where the button was pressed: nobody scrolls for what came of it.
    expect(page.get_by_text("Frozen: Is it worth it?")).to_be_in_viewport(ratio=0.9)
    expect(page.get_by_test_id("stPopoverBody").get_by_text("/report/")).to_be_in_viewport(ratio=0.9)
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Reports", exact=True).click()
    settle(page, "Reports")
    report_id = address.rsplit("/", 1)[1]
    open_at(page, f"{desk.served.origin}/reports?report={report_id}", "Reports")
    expect(page.get_by_role("heading", name="Is it worth it?")).to_be_visible()
    for button, begins in (("HTML file", b"<!DOCTYPE html>"), ("PDF", b"%PDF"), ("PNG", b"\x89PNG")):
        with page.expect_download() as download:
            page.get_by_role("button", name=button).first.click()
        assert Path(download.value.path()).read_bytes().startswith(begins)
    frozen = desk.served.get(f"/report/{report_id}")
    assert frozen.status == 200
    assert b"Is it worth it?" in frozen.body
    popover(page, "Revoke")
    page.get_by_role("textbox", name="Your name").fill("Bob")
    page.get_by_role("button", name="Revoke it").click()
    expect(page.get_by_test_id("stAlert")).to_contain_text("Revoked by Bob: Is it worth it?")
    assert desk.served.get(f"/report/{report_id}").status == 410


def test_tables_and_charts_come_as_files(page: Page, desk: Desk) -> None:
    open_at(page, f"{desk.served.origin}/modes", "Models")
    popover(page, "Export")
    with page.expect_download() as download:
        page.get_by_role("button", name="SVG").click()
    assert download.value.suggested_filename.startswith("compilewatch_modes-map")
    assert "<svg" in Path(download.value.path()).read_text()
    page.get_by_test_id("stPopoverBody").get_by_role("combobox").click()
    page.get_by_role("option", name=re.compile("Table: Best strategy")).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="JSON").click()
    document = json.loads(Path(download.value.path()).read_text())
    assert "bert-base" in {row["workload"] for row in document["rows"]}


@pytest.mark.slow
@pytest.mark.parametrize("taken_off", [False, True])
def test_below_a_path_behind_a_proxy_everything_works(browser: Browser, desk: Desk, taken_off: bool) -> None:
    with (
        proxied(desk.served.port, "/team/cw", taken_off=taken_off) as host,
        new_page(browser, host) as (page, trouble),
    ):
        # Without the slash it is the proxy that has to add it, where the dashboard cannot know the prefix.
        page.goto(f"{host}/team/cw/" if taken_off else f"{host}/team/cw")
        settle(page, "Today")
        page.get_by_role("link", name="Models", exact=True).click()
        settle(page, "Models")
        page.get_by_role("tab", name="Modes", exact=True).click()
        page.get_by_role("radio", name="Memory", exact=True).click()
        expect(page).to_have_url(re.compile(rf"^{host}/team/cw/modes\?.*goal=memory"))
        popover(page, "Share")
        link = shared_text(page, "goal=memory")
        assert link.startswith(f"{host}/team/cw/modes?")
        page.goto(link)
        settle(page, "Models")
        expect(page.get_by_role("radio", name="Memory", exact=True)).to_be_checked()
        page.goto(f"{host}/team/cw/trendz")
        settle(page, "Today")
        expect(page.get_by_test_id("stAlert")).to_contain_text("There is no page “trendz”")
        assert page.url.startswith(f"{host}/team/cw/")
        assert trouble.found == []
