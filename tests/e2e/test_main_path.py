"""What a reader does first: open, filter, go back, copy the link, and open it as somebody else."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboard.serving import Served
from tests.e2e.browser import new_page, open_at, settle

pytestmark = pytest.mark.browser


POINTS = 'path[aria-roledescription="point"]'


def _seen(page: Page) -> dict[str, list[str]]:
    """What two readers of one link must both see: texts, chosen filters, and every point of the chart."""
    main = page.get_by_test_id("stMain")
    expect(main.locator(POINTS).first).to_be_visible()
    return {
        "texts": main.get_by_test_id("stMarkdownContainer").all_inner_texts(),
        "chosen": main.locator('[aria-checked="true"], [aria-pressed="true"]').all_inner_texts(),
        "points": [str(point.get_attribute("aria-label")) for point in main.locator(POINTS).all()],
    }


def test_open_filter_copy_link_and_open_it_in_a_fresh_context(
    browser: Browser, dashboard_server: Served
) -> None:
    with new_page(browser, dashboard_server.origin) as (page, trouble):
        open_at(page, dashboard_server.origin, "Overview")
        page.get_by_test_id("stSidebar").get_by_role("link", name="Trends").click()
        settle(page, "Trends")
        page.get_by_role("radio", name="Latency").click()
        expect(page).to_have_url(re.compile("metric=latency"))
        page.get_by_test_id("stSidebar").get_by_role("button", name="Inference").click()
        expect(page).to_have_url(re.compile("task=inference"))
        settle(page, "Trends")
        expect(page.get_by_text("Latency of every case")).to_be_visible()
        page.get_by_role("button", name="Share").click()
        link = page.get_by_test_id("stPopoverBody").get_by_test_id("stCode").first.inner_text().strip()
        page.get_by_test_id("stPopoverBody").get_by_test_id("stCode").first.hover()
        page.get_by_role("button", name="Copy to clipboard").click()
        assert page.evaluate("() => navigator.clipboard.readText()") == link
        page.keyboard.press("Escape")
        expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)
        expect(page.get_by_role("radio", name="Latency")).to_be_visible()
        seen = _seen(page)
        assert trouble.found == []

    query = parse_qs(urlsplit(link).query)
    assert query["metric"] == ["latency"]
    assert query["task"] == ["inference"]
    assert query["workload"] == ["all"]
    assert query["focus"] == ["bert-base"]
    assert len(query["machine"][0]) == 16
    assert "data" in query
    with new_page(browser, dashboard_server.origin) as (page, trouble):
        open_at(page, link, "Trends")
        expect(page.get_by_text("Latency of every case")).to_be_visible()
        expect(page.get_by_role("radio", name="Latency")).to_be_visible()
        assert _seen(page) == seen
        assert trouble.found == []


def test_back_and_forward_undo_and_redo_filters(browser: Browser, dashboard_server: Served) -> None:
    with new_page(browser, dashboard_server.origin) as (page, trouble):
        open_at(page, f"{dashboard_server.origin}/trends", "Trends")
        page.get_by_role("radio", name="Compile cost").click()
        expect(page.get_by_text("Compile cost of every case")).to_be_visible()
        page.get_by_role("radio", name="Peak memory").click()
        expect(page.get_by_text("Peak memory of every case")).to_be_visible()
        page.go_back()
        expect(page.get_by_text("Compile cost of every case")).to_be_visible()
        expect(page.get_by_role("radio", name="Compile cost")).to_be_checked()
        page.go_back()
        expect(page.get_by_text("Speedup of every case")).to_be_visible()
        page.go_forward()
        expect(page.get_by_text("Compile cost of every case")).to_be_visible()
        assert trouble.found == []


def test_global_filters_follow_from_page_to_page(browser: Browser, dashboard_server: Served) -> None:
    with new_page(browser, dashboard_server.origin) as (page, trouble):
        open_at(page, f"{dashboard_server.origin}/trends?workload=mlp&workload=bert-base", "Trends")
        sidebar = page.get_by_test_id("stSidebar")
        sidebar.get_by_role("button", name="Inference").click()
        expect(page).to_have_url(re.compile("task=inference"))
        for title in ("Modes", "Overview"):
            sidebar.get_by_role("link", name=title).click()
            settle(page, title)
            expect(page).to_have_url(re.compile("task=inference"))
            expect(page).to_have_url(re.compile("workload=mlp&workload=bert-base"))
        assert trouble.found == []


def test_a_click_on_a_point_opens_the_trials_behind_it(browser: Browser, dashboard_server: Served) -> None:
    with new_page(browser, dashboard_server.origin) as (page, trouble):
        open_at(page, f"{dashboard_server.origin}/trends?focus=bert-base", "Trends")
        page.locator(f'{POINTS}[aria-label*="Strategy: default"]').last.click()
        settle(page, "Trial")
        expect(page).to_have_url(re.compile(r"trial\?.*run="))
        expect(page.get_by_text("3 trials, 0 failed")).to_be_visible()
        assert trouble.found == []


def test_what_a_link_asks_in_vain_is_said(browser: Browser, dashboard_server: Served) -> None:
    with new_page(browser, dashboard_server.origin) as (page, trouble):
        open_at(page, f"{dashboard_server.origin}/modes?workload=bert-bas&goal=fame&x=1", "Modes")
        warning = page.get_by_test_id("stAlert")
        expect(warning).to_contain_text("Did you mean “bert-base”?")
        expect(warning).to_contain_text("“fame” is none of latency, steps, memory")
        expect(warning).to_contain_text("“x” is no selector")
        for path in ("trendz", "trends/foo"):
            open_at(page, f"{dashboard_server.origin}/{path}", "Overview")
            expect(page.get_by_test_id("stAlert")).to_contain_text(f"There is no page “{path}”")
        assert trouble.found == []
