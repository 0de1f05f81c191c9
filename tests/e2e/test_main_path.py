"""What a reader does first: open, filter, click, go back, copy the link, and open it as somebody else."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

from tests.dashboard.serving import Served
from tests.e2e.browser import new_page, open_at, settle

pytestmark = pytest.mark.browser


POINTS = 'path[aria-roledescription="point"]'


def _seen(page: Tab) -> dict[str, list[str]]:
    """What two readers of one link must both see: texts, chosen filters, and every point of the chart."""
    main = page.get_by_test_id("stMain")
    expect(main.locator(POINTS).first).to_be_visible()
    return {
        "texts": main.get_by_test_id("stMarkdownContainer").all_inner_texts(),
        "chosen": main.locator('[aria-checked="true"], [aria-pressed="true"]').all_inner_texts(),
        "points": [str(point.get_attribute("aria-label")) for point in main.locator(POINTS).all()],
    }


def test_open_filter_copy_link_and_open_it_in_a_fresh_context(
    browser: Browser, tab: Tab, recorded_server: Served
) -> None:
    open_at(tab, recorded_server.origin, "Today")
    tab.get_by_role("link", name="Models").click()
    settle(tab, "Models")
    open_at(tab, f"{recorded_server.origin}/workload?focus=bert-base", "Models")
    tab.get_by_role("radio", name="Speedup", exact=True).click()
    expect(tab).to_have_url(re.compile("metric=speedup"))
    tab.get_by_role("button", name="Filters").click()
    tab.get_by_role("button", name="Inference").click()
    expect(tab).to_have_url(re.compile("task=inference"))
    settle(tab, "Models")
    expect(tab.get_by_role("button", name="Filters (1)")).to_be_visible()
    expect(tab.get_by_text("Speedup of every strategy")).to_be_visible()
    tab.get_by_role("button", name="Share").click()
    link = tab.get_by_test_id("stPopoverBody").get_by_test_id("stCode").first.inner_text().strip()
    tab.get_by_test_id("stPopoverBody").get_by_test_id("stCode").first.hover()
    tab.get_by_role("button", name="Copy to clipboard").click()
    assert tab.evaluate("() => navigator.clipboard.readText()") == link
    tab.keyboard.press("Escape")
    expect(tab.get_by_test_id("stPopoverBody")).to_have_count(0)
    expect(tab.get_by_role("radio", name="Speedup", exact=True)).to_be_visible()
    seen = _seen(tab)
    query = parse_qs(urlsplit(link).query)
    assert query["metric"] == ["speedup"]
    assert query["task"] == ["inference"]
    assert query["workload"] == ["all"]
    assert query["focus"] == ["bert-base"]
    assert len(query["machine"][0]) == 16
    assert "data" in query
    with new_page(browser, recorded_server.origin) as (page, trouble):
        open_at(page, link, "Models")
        expect(page.get_by_text("Speedup of every strategy")).to_be_visible()
        expect(page.get_by_role("radio", name="Speedup", exact=True)).to_be_visible()
        assert _seen(page) == seen
        assert trouble.found == []


def test_back_and_forward_undo_and_redo_filters(tab: Tab, recorded_server: Served) -> None:
    open_at(tab, f"{recorded_server.origin}/trends?focus=mlp", "Models")
    tab.get_by_role("radio", name="Compile cost").click()
    expect(tab.get_by_text("Compile cost of every strategy")).to_be_visible()
    tab.get_by_role("radio", name="Peak memory").click()
    expect(tab.get_by_text("Peak memory of every strategy")).to_be_visible()
    tab.go_back()
    expect(tab.get_by_text("Compile cost of every strategy")).to_be_visible()
    expect(tab.get_by_role("radio", name="Compile cost")).to_be_checked()
    tab.go_back()
    expect(tab.get_by_text("Latency of every strategy")).to_be_visible()
    tab.go_forward()
    expect(tab.get_by_text("Compile cost of every strategy")).to_be_visible()


def test_a_click_on_a_point_opens_the_trials_behind_it(tab: Tab, recorded_server: Served) -> None:
    open_at(tab, f"{recorded_server.origin}/trends?focus=bert-base", "Models")
    tab.locator(f'{POINTS}[aria-label*="Strategy: default"]').last.click()
    settle(tab, "Models")
    expect(tab).to_have_url(re.compile(r"trial\?.*run="))
    expect(tab.get_by_text("3 trials, 0 failed")).to_be_visible()


def test_a_row_and_the_names_in_it_open_what_they_are_about(tab: Tab, recorded_server: Served) -> None:
    def click(table: int, right: int) -> None:
        rows = tab.get_by_test_id("data-grid-canvas").nth(table)
        rows.scroll_into_view_if_needed()
        box = rows.bounding_box()
        assert box is not None
        tab.mouse.move(box["x"] + right, box["y"] + 54)
        tab.mouse.click(box["x"] + right, box["y"] + 55)

    for right in (300, 60):
        open_at(tab, f"{recorded_server.origin}/workload", "Models")
        click(0, right)
        expect(tab).to_have_url(re.compile("workload.*focus="))
        settle(tab, "Models")
    tab.go_back()
    expect(tab).not_to_have_url(re.compile("focus="))
    open_at(tab, f"{recorded_server.origin}/runs", "Runs")
    click(tab.get_by_test_id("data-grid-canvas").count() - 1, 60)
    settle(tab, "Today")
    expect(tab).to_have_url(re.compile(r"/\?machine="))
    assert len(tab.context.pages) == 1


def test_a_name_on_today_opens_beside_the_list(tab: Tab, recorded_server: Served) -> None:
    open_at(tab, recorded_server.origin, "Today")
    with tab.context.expect_page() as opened:
        tab.get_by_role("link", name="ann", exact=True).click()
    settle(opened.value, "Inbox")
    expect(opened.value.get_by_role("button", name="Take")).to_be_visible()
    opened.value.close()
    expect(tab.get_by_role("heading", name="Look at these first")).to_be_visible()


def test_a_change_is_answered_in_its_row_over_the_list(tab: Tab, recorded_server: Served) -> None:
    open_at(tab, f"{recorded_server.origin}/regressions", "Inbox")
    rows = tab.get_by_test_id("data-grid-canvas").first
    box = rows.bounding_box()
    assert box is not None
    # A canvas does not tell where its cells are: the mouse goes along the row until it is over a button.
    for right in range(int(box["width"]) - 10, 300, -10):
        tab.mouse.move(box["x"] + right, box["y"] + 51)
        if rows.evaluate("canvas => canvas.style.cursor") == "pointer":
            break
    tab.mouse.click(box["x"] + right, box["y"] + 52)
    tab.get_by_role("menuitem", name="Expected").click()
    dialog = tab.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Expected", exact=True)).to_be_visible()
    expect(dialog.get_by_label("Note")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert "change=" not in tab.url, "the list stays as it was"


def test_a_click_on_a_verdict_shows_its_evidence_and_back_returns(tab: Tab, recorded_server: Served) -> None:
    open_at(tab, f"{recorded_server.origin}/upgrade?group=undecided&group=faster&group=unchanged", "Upgrade")
    tab.locator('path[aria-label*="mlp"][aria-label*="default"]').first.click()
    evidence = tab.get_by_role("heading", name="mlp with default: the trials of both sides")
    expect(evidence).to_be_visible()
    expect(tab.get_by_role("button", name="Its history")).to_be_visible()
    assert "focus=mlp&focus_strategy=default" in tab.url
    tab.go_back()
    expect(evidence).to_have_count(0)
    assert "focus" not in tab.url


def test_a_tab_of_a_model_has_an_address_and_keeps_what_was_chosen(tab: Tab, recorded_server: Served) -> None:
    open_at(tab, f"{recorded_server.origin}/trends?focus=bert-base&strategy=default&metric=speedup", "Models")
    expect(tab).to_have_url(re.compile(r"/workload\?.*focus=bert-base"))
    expect(tab.get_by_role("tab", name="History", exact=True)).to_have_attribute("aria-selected", "true")
    expect(tab.get_by_text("Speedup of every strategy")).to_be_visible()
    known = tab.get_by_text(re.compile("^inference with "))
    said = known.inner_text()
    tab.get_by_role("tab", name="Modes", exact=True).click()
    expect(tab).to_have_url(re.compile(r"/modes\?.*strategy=default.*focus=bert-base"))
    expect(tab.get_by_role("tab", name="Modes", exact=True)).to_have_attribute("aria-selected", "true")
    expect(known).to_have_text(said)
    tab.go_back()
    expect(tab).to_have_url(re.compile(r"/workload\?.*strategy=default.*focus=bert-base"))
    expect(tab.get_by_role("tab", name="History", exact=True)).to_have_attribute("aria-selected", "true")
    tab.go_forward()
    expect(tab).to_have_url(re.compile(r"/modes\?.*strategy=default.*focus=bert-base"))
    expect(tab.get_by_role("tab", name="Modes", exact=True)).to_have_attribute("aria-selected", "true")
    tab.reload()
    settle(tab, "Models")
    expect(tab.get_by_role("tab", name="Modes", exact=True)).to_have_attribute("aria-selected", "true")
    tab.get_by_role("link", name="Models", exact=True).click()
    expect(tab.get_by_role("tab", name="All models", exact=True)).to_be_visible()
