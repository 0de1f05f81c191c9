"""Six questions of an engineer, asked of the recorded CPU in a browser: clicks, seconds to the headline."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, expect

from compilewatch.dashboard.links.links import MODELS, PAGES, Page, heading
from tests.dashboard.serving import Served, served
from tests.e2e.browser import new_page, settle
from tests.e2e.look import recorded

pytestmark = [pytest.mark.benchmark, pytest.mark.browser, pytest.mark.timeout(1200)]

MOST_S = 3.0
ASKED = 3


class Question(NamedTuple):
    """`page` is reached by one click in the menu, unless it is the one that opens."""

    asked: str
    page: Page
    answer: str


QUESTIONS = [
    Question("Is all well?", Page.OVERVIEW, "3 of 4 models undecided since torch 2.12.1"),
    Question("What did the upgrade change?", Page.UPGRADE, "4 of 8 cases faster, none slower"),
    Question("Does compiling pay off?", Page.WORKLOAD, "Compiled is shown to be faster on 3 of 4 models"),
    Question("Which mode?", Page.MODES, "Fastest of 4 workloads: default 3"),
    Question("What does a cold start cost?", Page.COLD_START, "First result after 9.15 s cold, 3.36 s warm"),
]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("questions")
    url = f"sqlite:///{folder / 'results.db'}"
    recorded("cpu", url)
    with served(url, folder / "log") as server:
        yield server


def test_an_answer_is_a_headline_two_clicks_away(running: Served, browser: Browser) -> None:
    slow = {}
    with new_page(browser, running.origin) as (page, trouble):
        for question in QUESTIONS:
            clicks, took = int(question.page is not Page.OVERVIEW), []
            for _ in range(1 + ASKED):
                page.goto(running.origin)
                if clicks:
                    settle(page, heading(Page.OVERVIEW))
                started = time.perf_counter()
                if clicks:
                    entry = heading(question.page)
                    page.get_by_test_id("stPageLink").filter(has_text=entry).first.click()
                    if question.page in MODELS[1:]:
                        page.get_by_role("tab", name=PAGES[question.page].title, exact=True).click()
                else:
                    page.reload(wait_until="commit")
                expect(page.get_by_role("heading", level=2).filter(has_text=question.answer)).to_be_visible()
                took.append(time.perf_counter() - started)
                settle(page, heading(question.page))
            median = statistics.median(took[1:])
            print(f"\n| {question.asked} | {clicks} | {median:.2f} | load {os.getloadavg()[0]:.1f}")
            if median > MOST_S:
                slow[question.asked] = median
        assert trouble.found == []
    assert slow == {}
