"""The way of the Tab key: from the top of the page to a regression and through its triage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

from compilewatch.db.engine.session import open_database
from compilewatch.db.service.recording import record_comparison
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.store.trials import save_trials
from tests.builders import START
from tests.dashboard.serving import Served, served
from tests.e2e.browser import SETTLED, new_page, open_at
from tests.regression_cases import RUN_0, RUN_1, judged, stepping_history

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def regressed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two builds, the second slower, its regressions recorded."""
    path = tmp_path_factory.mktemp("regressed") / "results.db"
    with open_database(f"sqlite:///{path}", migrate=True) as database:
        save_trials(database, stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0")))
        record_comparison(database, judged(database, RUN_0, RUN_1), at=START)
    return path


@pytest.fixture(scope="module")
def regressed_server(regressed: Path) -> Iterator[Served]:
    with served(f"sqlite:///{regressed}", regressed.with_suffix(".log")) as running:
        yield running


# A form lies at most so many steps behind the rows of the table that it is about.
MOST_STEPS = 45

_FOCUSED = """
() => {
    const part = document.activeElement;
    const label = part.getAttribute("aria-label")
        || (part.labels && part.labels.length ? part.labels[0].innerText : "")
        || part.innerText || part.value || "";
    const style = getComputedStyle(part);
    const box = part.getBoundingClientRect();
    const ring = style.outlineStyle !== "none" || style.boxShadow !== "none";
    return {
        label: label, tag: part.tagName, type: part.type || "",
        place: part.closest("[data-testid]")?.dataset.testid || "",
        visible: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight, ring: ring,
    };
}
"""


def tab_to(page: Tab, words: str, *, tag: str = "") -> list[dict[str, object]]:
    """Press Tab until what has the focus is called `words`. The places passed on the way."""
    passed: list[dict[str, object]] = []
    for _ in range(MOST_STEPS):
        page.keyboard.press("Tab")
        at = page.evaluate(_FOCUSED)
        passed.append(at)
        if words in f"{at['label']} {at['place']}" and tag in ("", at["tag"]):
            return passed
    raise AssertionError(f"{words} was not reached: {[(each['tag'], each['label']) for each in passed]}")


def press_until(page: Tab, key: str, words: str) -> None:
    for _ in range(MOST_STEPS):
        if words in str(page.evaluate(_FOCUSED)["label"]):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{words} was not reached with {key}")


def test_triage_needs_no_mouse(browser: Browser, regressed_server: Served, regressed: Path) -> None:
    with new_page(browser, regressed_server.origin) as (page, trouble):
        open_at(page, f"{regressed_server.origin}/", "Today")
        expect(page.get_by_test_id("stMain").get_by_role("link", name="Inbox")).to_be_visible()
        passed = tab_to(page, "Inbox", tag="A")
        page.keyboard.press("Enter")
        expect(page.get_by_test_id("stHeading").get_by_role("heading", name="Inbox")).to_be_visible()
        page.wait_for_selector(SETTLED)
        hidden = [each for each in passed if not (each["visible"] and each["ring"])]
        assert hidden == [], "where the focus is, must be seen"

        # The browser loads what draws tables after the page has settled.
        expect(page.get_by_test_id("data-grid-canvas").first).to_be_attached()
        tab_to(page, "data-grid-canvas")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("change="))
        page.wait_for_selector(SETTLED)

        tab_to(page, "Say what the 2 chosen regressions are", tag="SUMMARY")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Your name (the owner)")).to_be_visible()
        tab_to(page, "acknowledged")
        page.keyboard.press("ArrowUp")
        press_until(page, "ArrowDown", "confirmed")
        tab_to(page, "Your name (the owner)")
        page.keyboard.type("Grace")
        tab_to(page, "Note")
        page.keyboard.type("Fresh trials show it.")
        tab_to(page, "Record", tag="BUTTON")
        page.keyboard.press("Enter")
        for button in ("Record it", "Cancel"):
            expect(page.get_by_role("button", name=button)).to_be_in_viewport(ratio=1)
        page.wait_for_selector(SETTLED)
        tab_to(page, "Record it", tag="BUTTON")
        page.keyboard.press("Enter")
        expect(page.get_by_text("Recorded 2 regressions as confirmed, by Grace.")).to_be_visible()
        assert trouble.found == []
    with open_database(f"sqlite:///{regressed}", read_only=True) as database:
        events = [event for each in standing_regressions(database) for event in each.triage]
    assert [(event.state.value, event.author, event.note) for event in events] == [
        ("confirmed", "Grace", "Fresh trials show it.")
    ] * 2
