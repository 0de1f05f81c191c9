"""A frozen report opened as a file: on a wide screen its tables need no scrolling, on paper they fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from compilewatch.dashboard.document.page import render
from compilewatch.dashboard.reports.freeze import freeze_comparison, freeze_link
from tests.dashboard.conftest import DATABASE

# Between the margins of A4 across, at 96 dots per inch.
PAPER_PX = 1032
LINES_OF_A_CELL = """
    titles => [...document.querySelectorAll('td')].filter(cell => {
        const table = cell.closest('table'), title = table.rows[0].cells[cell.cellIndex].textContent;
        const text = document.createRange();
        text.selectNodeContents(cell);
        return titles.includes(title) && text.getBoundingClientRect().height > 40;
    }).map(cell => cell.textContent)
"""
HIDDEN_PX = "[...document.querySelectorAll('.wide')].map(box => box.scrollWidth - box.clientWidth)"


@pytest.fixture(scope="module")
def report(browser: Browser, recorded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DATABASE, recorded_url)
        at = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
        content = freeze_comparison("torch=2.12.0", "torch=2.13.0", title=None, by="ann", at=at)
    file: Path = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(render(content))
    page = browser.new_page()
    page.goto(file.as_uri())
    yield page
    page.close()


def test_on_a_wide_screen_every_column_is_in_sight(report: Page) -> None:
    report.set_viewport_size({"width": 1440, "height": 900})
    assert set(report.evaluate(HIDDEN_PX)) == {0}
    assert report.evaluate(LINES_OF_A_CELL, ["Metric", "Verdict"]) == []


def test_on_a_phone_tables_scroll_and_the_page_does_not(report: Page) -> None:
    report.set_viewport_size({"width": 390, "height": 844})
    assert report.evaluate("document.documentElement.scrollWidth") == 390
    assert max(report.evaluate(HIDDEN_PX)) > 0


def test_on_paper_no_column_is_cut(report: Page) -> None:
    report.set_viewport_size({"width": PAPER_PX, "height": 900})
    report.emulate_media(media="print")
    assert report.evaluate("document.documentElement.scrollWidth") == PAPER_PX
    assert not report.get_by_text("unchanged_margin").first.is_visible(), (
        "the policy is in the file, not on paper"
    )
    # Upright, a reason of two sentences would be a column of single words.
    paper = re.findall(rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", report.pdf(prefer_css_page_size=True))
    assert {(round(float(width)), round(float(height))) for width, height in paper} == {(842, 595)}
    report.emulate_media(media="screen")


def test_a_report_of_one_model_fits_three_sheets(browser: Browser, recorded_url: str, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DATABASE, recorded_url)
        at = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
        content = freeze_link("workload?focus=bert-base", title=None, by="ann", at=at)
    file = tmp_path / "model.html"
    file.write_text(render(content))
    page = browser.new_page(viewport={"width": PAPER_PX, "height": 700})
    page.goto(file.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") == PAPER_PX
    assert len(re.findall(rb"/Type ?/Page\b", page.pdf(prefer_css_page_size=True))) <= 3
    page.close()
