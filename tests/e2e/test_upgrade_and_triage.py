"""A reader clicks a verdict for its evidence and goes back; another says what a regression is."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from db.engine.session import open_database
from db.queries.regressions import standing_regressions
from tests.dashboard.serving import Served
from tests.e2e.browser import new_page, open_at

pytestmark = pytest.mark.browser


def test_a_click_on_a_verdict_shows_its_evidence_and_back_returns(
    browser: Browser, regressed_server: Served
) -> None:
    with new_page(browser, regressed_server.origin) as (page, trouble):
        open_at(page, f"{regressed_server.origin}/upgrade", "Upgrade")
        page.locator('path[aria-label*="mlp"][aria-label*="default"]').first.click()
        evidence = page.get_by_role("heading", name="mlp with default: the trials of both sides")
        expect(evidence).to_be_visible()
        expect(page.get_by_role("button", name="Its history")).to_be_visible()
        assert "focus=mlp&focus_strategy=default" in page.url
        page.go_back()
        expect(evidence).to_have_count(0)
        assert "focus" not in page.url
        assert trouble.found == []


@pytest.mark.slow
def test_a_regression_is_triaged_by_keyboard_and_asked_once(
    browser: Browser, regressed_server: Served, regressed: Path
) -> None:
    with open_database(f"sqlite:///{regressed}", read_only=True) as database:
        chosen = standing_regressions(database)[0].regression.regression_id
    with new_page(browser, regressed_server.origin) as (page, trouble):
        open_at(page, f"{regressed_server.origin}/regressions?regression={chosen}", "Regressions")
        page.get_by_text("Say what the 1 chosen regression is").click()
        page.get_by_label("Your name (the owner)").focus()
        page.keyboard.type("Grace")
        page.keyboard.press("Tab")
        page.keyboard.type("bisecting")
        page.get_by_test_id("stBaseButton-secondaryFormSubmit").focus()
        page.keyboard.press("Enter")
        yes = page.get_by_role("button", name="Record it")
        expect(yes).to_be_in_viewport(ratio=1)
        expect(page.get_by_role("button", name="Cancel")).to_be_in_viewport(ratio=1)
        yes.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_text("Recorded 1 regression as acknowledged, by Grace.")).to_be_visible()
        assert trouble.found == []
    with open_database(f"sqlite:///{regressed}", read_only=True) as database:
        (event,) = standing_regressions(database)[0].triage
    assert (event.author, event.note) == ("Grace", "bisecting")
