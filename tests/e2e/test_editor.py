"""Signing in and out in a browser; there an editor brings a file in and says what a regression is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.access import Roles
from tests.builders import make_trial
from tests.dashboard.serving import SignInServer, served_with_sign_in
from tests.e2e.browser import SETTLED, new_page, open_at

pytestmark = pytest.mark.browser

MARKUP = '<img src=x onerror="window.ran=1"><script>window.ran=1</script> [go](javascript:window.ran=1)'


@pytest.fixture(scope="module")
def place(recorded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignInServer]:
    roles = Roles(editors=("performance",), viewers=("readers",))
    with served_with_sign_in(recorded_url, tmp_path_factory.mktemp("editor"), roles) as running:
        yield running


@pytest.fixture(scope="module")
def page(browser: Browser, place: SignInServer) -> Iterator[Tab]:
    """Of Ada, an editor, who stays signed in."""
    with new_page(browser, place.server.origin) as (tab, _):
        yield tab


def _is_text(page: Tab) -> bool:
    """Whether no script ran and no markup of the texts became an element."""
    found = 'window.ran === undefined && !document.querySelector("img[onerror], a[href^=javascript]")'
    return bool(page.evaluate(found))


def test_an_editor_brings_a_file_in(page: Tab, place: SignInServer, tmp_path: Path) -> None:
    trials = [make_trial(trial_id=f"uploaded-{n}", workload="mlp", label=MARKUP) for n in range(2)]
    file = tmp_path / "<img src=x onerror=window.ran=1>.jsonl"
    file.write_text("".join(f"{trial.to_json()}\n" for trial in trials))
    open_at(page, f"{place.server.origin}/runs", "Runs")
    page.get_by_role("button", name="Import results").click()
    page.locator("input[type=file]").set_input_files(file)
    expect(page.get_by_test_id("stFileUploader")).to_contain_text(".jsonl")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("Would bring in 2 new trials")).to_be_visible()
    assert _is_text(page)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_text("Would bring in 2 new trials")).to_have_count(0)
    expect(page.get_by_test_id("stAlert").filter(has_text="2 new trials").first).to_be_visible()
    assert _is_text(page)
    with open_database(place.url, read_only=True) as database:
        assert {"uploaded-0", "uploaded-1"} <= set(trials_frame(database)["trial_id"])


def test_a_deep_link_leads_through_the_login_to_its_page_and_out_again(
    browser: Browser, place: SignInServer
) -> None:
    origin = place.server.origin
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        page = context.new_page()
        page.goto(f"{origin}/workload?workload=mlp")
        page.wait_for_selector(SETTLED)
        assert page.url.startswith(f"{origin}/workload?workload=mlp")
        expect(page.get_by_test_id("stMain")).to_contain_text(re.compile(r"ada@.?example\.com · editor"))
        leave = page.get_by_role("link", name="Sign out")
        assert leave.get_attribute("href") == "logout"
        page.goto(f"{origin}/logout")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Signed out")).to_be_visible()
        # A program with the cookies that this browser has left is nobody.
        assert context.request.get(f"{origin}/metrics").status == 401
    finally:
        context.close()
