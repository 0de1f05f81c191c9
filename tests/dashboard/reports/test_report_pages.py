"""A frozen page keeps what the page shows: every table, chart title and figure of it is in the report."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype
from streamlit.testing.v1 import AppTest

from compilewatch.dashboard.document.content import Content, Table
from compilewatch.dashboard.document.page import render
from compilewatch.dashboard.links.links import Link, Page, href
from compilewatch.dashboard.read.data import read_choices, read_regressions, read_trial
from compilewatch.dashboard.reports.freeze import freeze_link
from tests.dashboard.conftest import opened
from tests.dashboard.reports.test_reports import check_page

SIGNED: dict[str, Any] = {"title": None, "by": "ann", "at": datetime(2026, 11, 20, 20, 0, tzinfo=UTC)}
# Drawings that only a screen has, and what leads on from a row.
NOT_TEXT = {"history", "started", "recorded_at", "at", "last", "change", "share", "trial"}
# max-autotune on mlp with the newest build.
FAILED = "run-gpu-box-3-0-0002-0005"


def rows_of(content: Content) -> list[set[str]]:
    return [set(row) for part in content.sections if isinstance(part, Table) for row in part.rows]


def missing_rows(test: AppTest, content: Content) -> list[set[str]]:
    """Rows of the page's tables that no table of the report has in its words."""
    kept = rows_of(content)
    frames: list[pd.DataFrame] = [each.value for each in test.dataframe]
    texts = [
        {
            str(row[name])
            for name in frame.columns
            if name not in NOT_TEXT
            and not name.endswith(("-do", "-more"))
            and not is_numeric_dtype(frame[name])
            and row[name]
            and not pd.isna(row[name])
        }
        for frame in frames
        for _, row in frame.iterrows()
    ]
    return [row for row in texts if not any(row <= each for each in kept)]


def test_an_upgrade_keeps_its_case_and_every_table(copied_url: str) -> None:
    choices = read_choices()
    rows = [each for each in choices.build_rows.values() if each["torch_variant"] == "cu130"]
    base, head = (
        next(row["build_id"] for row in rows if row["torch"] == torch) for torch in ("2.12.0", "2.13.0")
    )
    focus = {"focus": "bert-base", "focus_strategy": "default"}
    link = Link(page=Page.UPGRADE, base=base, head=head, metric="latency", **focus)
    test = opened(link)
    content = freeze_link(href(link), **SIGNED)
    assert not missing_rows(test, content)
    page = render(content)
    check_page(page)
    assert page.count("<figure") == len(test.get("vega_lite_chart")) == 3, "matrix, trials, history"
    naive = next(card for card in test.metric if "naive" in card.label)
    assert escape(naive.value) in page


def test_a_failed_trial_keeps_its_reason_and_the_end_of_its_log(recorded_here: str) -> None:
    failure = read_trial(FAILED).failure
    page = render(freeze_link(href(Link(page=Page.TRIAL, trial=FAILED)), **SIGNED))
    assert escape(failure.message) in page
    assert failure.log_tail
    assert all(escape(line) in page for line in failure.log_tail.splitlines())
    assert f"compilewatch reproduce {FAILED}" in page


def test_a_chosen_regression_keeps_its_evidence_and_its_story(recorded_here: str) -> None:
    (first, *_) = read_regressions()
    link = Link(page=Page.REGRESSIONS, regression=(first.regression.regression_id,))
    test = opened(link)
    content = freeze_link(href(link), **SIGNED)
    assert not missing_rows(test, content)
    page = render(content)
    check_page(page)
    assert page.count("<figure") == len(test.get("vega_lite_chart")) == 2, "the trials, and the history"
    for said in ("bisecting", "https://example.org/1", "compilewatch compare", "acknowledged"):
        assert said in page
