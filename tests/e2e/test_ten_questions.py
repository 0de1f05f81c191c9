"""What a lead asks in the morning, over the recorded histories: answered in the first screen, one click."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, expect

from compilewatch.dashboard.read.database import close_databases
from compilewatch.db.engine.session import open_database
from compilewatch.db.service.recording import record_comparison
from compilewatch.db.verdicts.gateway import compare
from compilewatch.db.verdicts.sides import resolve_side
from tests.dashboard.serving import Served, served
from tests.e2e.browser import new_page, open_at, settle
from tests.made_once import MadeOnce, fill_demo

pytestmark = pytest.mark.browser

SEEN = """() => {
    const said = [], inside = box => box.height && box.top < innerHeight && box.bottom > 0;
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const range = document.createRange();
        range.selectNodeContents(texts.currentNode);
        if (inside(range.getBoundingClientRect())) said.push(texts.currentNode.textContent);
    }
    for (const grid of document.querySelectorAll("canvas"))
        if (inside(grid.getBoundingClientRect()))
            for (const row of grid.querySelectorAll("tr, [role=row]"))
                said.push([...row.children].map(cell => cell.textContent).join(" | "));
    return said.join("\\n");
}"""
"""The texts of the first screen, of tables a line for each row; a table has its texts within its canvas."""


class Question(NamedTuple):
    """What is asked, what is clicked from `/`, and what then stands in the first screen."""

    asked: str
    clicks: tuple[tuple[str, str], ...]
    answers: tuple[str, ...]


QUESTIONS = (
    Question(
        "Which cases got slower after the last upgrade?",
        (),
        (r"6 of 6 models undecided since torch 2\.11\.0", "0 slower"),
    ),
    Question(
        "Does compiling pay for gpt2?", (("link", "Models"),), (r"gpt2 .*about 2,500 \[1,900, 3,100\]",)
    ),
    Question(
        "Which mode is best for gpt2, how sure?",
        (("link", "Models"),),
        (r"gpt2 \| default \| 3\.2[78]\d* \| 3\.06x to 3\.51x",),
    ),
    Question(
        "How long is the cold start of gpt2?",
        (("link", "Models"),),
        (r"gpt2 .*23\.[56]\d* \| inductor, 23\.9 %",),
    ),
    Question(
        "Since when is a model slower?",
        (("link", "Inbox"),),
        (r"torch 2\.8\.0 .*\| elementwise with default .*gone with torch 2\.15\.0",),
    ),
    Question("What changed?", (), (r"What changed under you(.|\n)*2\.11\.0 → 2\.13\.0",)),
    Question(
        "Is the machine well, when did the last run end?",
        (),
        (r"machine steady, canary \+1\.28 % · last run measured 2026-11-26 18:17 UTC",),
    ),
    Question("What failed last night?", (), ("none failed",)),
    Question(
        "How does throughput scale with the batch?",
        (("link", "Models"), ("tab", "Sizes")),
        ("No model was measured at several sizes",),
    ),
    Question("Send exactly this view.", (("button", "Share"),), (r"machine=.*data=\d+", "Freeze")),
)

_MODELS = (("link", "Models"),)
OF_THE_DEMO = (
    Question(
        "Which cases got slower?",
        (),
        (
            r"1 open change, none of 3 models slower since torch 2\.12\.1",
            r"cnn(.|\n)*47,661.steps(.|\n)*70,357.steps(.|\n)*\+47\.6(.|\n)*still there with torch 2\.12\.1",
        ),
    ),
    Question("Does compiling pay?", _MODELS, (r"elementwise .*about 5,200 \[4,100, 6,200\]",)),
    Question("Which mode, how sure?", _MODELS, (r"elementwise \| default \| 2\.\d* \| 2\.44x to 2\.56x",)),
    Question("How long is the cold start?", _MODELS, (r"elementwise .*6\.1\d* .*kernel compile, 39\.5 %",)),
    Question(
        "Since when is a model slower?",
        (("link", "Inbox"),),
        (
            r"torch 2\.9\.1 .*\| cnn with default .*still there with torch 2\.12\.1",
            r"torch 2\.8\.0 .*\| elementwise with default .*gone with torch 2\.15\.0",
        ),
    ),
    Question("What changed?", (), (r"What changed under you(.|\n)*2\.12\.1 → 2\.15\.0",)),
    Question("Is the machine well?", (), (r"machine steady, canary .* · last run measured .*00:57 UTC",)),
    Question("What failed last night?", (), ("none failed",)),
    Question(
        "How does throughput scale?",
        (*_MODELS, ("tab", "Sizes")),
        ("No model was measured at several sizes",),
    ),
    Question("Send exactly this view.", (("button", "Share"),), (r"machine=.*data=\d+", "Freeze")),
)


@pytest.fixture(scope="module")
def histories(histories_of: Callable[[str], Path]) -> Iterator[Served]:
    """The recorded histories, with what got slower from 2.6 to 2.8 filed as a gate would have."""
    path = histories_of("both")
    url = f"sqlite:///{path}"
    with open_database(url) as database:
        base, head = (resolve_side(f"torch={torch}", database) for torch in ("2.6.0", "2.8.0"))
        assert record_comparison(database, compare(database, base, head), at=datetime.now(UTC)).new
    close_databases()
    with served(url, path.with_name("log")) as running:
        yield running


@pytest.fixture(scope="module")
def demo(made: MadeOnce) -> Iterator[Served]:
    """What `compilewatch demo` serves."""
    path = made("demo", fill_demo)
    with served(f"sqlite:///{path}", path.with_name("log")) as running:
        yield running


@pytest.mark.parametrize(("fixture", "questions"), [("histories", QUESTIONS), ("demo", OF_THE_DEMO)])
def test_nine_of_ten_questions_are_answered_in_the_first_screen_with_one_click_at_most(
    browser: Browser, request: pytest.FixtureRequest, fixture: str, questions: tuple[Question, ...]
) -> None:
    server: Served = request.getfixturevalue(fixture)
    with new_page(browser, server.origin) as (tab, trouble):
        wrong = []
        for question in questions:
            open_at(tab, server.origin, "Today")
            for role, name in question.clicks:
                tab.get_by_role(role, name=re.compile(f"^{name}")).first.click()  # type: ignore[arg-type]
                if role != "button":
                    settle(tab, "Inbox" if name == "Inbox" else "Models")
            expect(tab.get_by_test_id("stSkeleton")).to_have_count(0)
            tab.wait_for_timeout(600)
            seen = tab.evaluate(SEEN)
            wrong += [
                f"{question.asked} {answer}\n{seen}"
                for answer in question.answers
                if not re.search(answer, seen)
            ]
        assert wrong == []
        assert trouble.found == []
    assert len(questions) == 10
    assert sum(len(question.clicks) <= 1 for question in questions) >= 9
