"""The Reports page and the Share menu: what was frozen is listed with its origin, found and revoked."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from streamlit.testing.v1 import AppTest

from compilewatch.dashboard.document.content import Content, ReportError
from compilewatch.dashboard.document.page import render
from compilewatch.dashboard.links.links import Link, Page, href
from compilewatch.dashboard.reports.freeze import FREEZABLE, freeze_link, store_report
from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import latest_trials_frame
from compilewatch.db.records.people import KEEP_DAYS_VARIABLE
from compilewatch.db.service.reports import REPORTS, reports_frame
from tests.dashboard.conftest import opened, texts
from tests.dashboard.reports.test_reports import check_page

SIGNED = {"title": None, "by": "ann", "at": datetime(2026, 11, 20, 20, 0, tzinfo=UTC)}


def frozen(url: str, link: str = "modes", title: str | None = None) -> str:
    return store_report(url, freeze_link(link, **{**SIGNED, "title": title}))


def shown(test: AppTest):
    return next(each.value for each in test.dataframe if "subject" in each.value.columns)


def test_reports_are_listed_with_who_when_and_of_what(copied_url: str) -> None:
    first = frozen(copied_url, title="![x](http://evil.example/a.png)")
    test = opened(Link(page=Page.REPORTS))
    (row,) = shown(test).to_dict("records")
    assert (row["created_by"], row["state"]) == ("ann", "● there")
    assert row["subject"].startswith("Modes for latency")
    assert row["created_at"] == SIGNED["at"]
    test = opened(Link(page=Page.REPORTS, report=first))
    assert f"/report/{first}" in texts(test)
    assert not [each for each in test.markdown if "](http" in each.value]
    labels = {each.proto.label for each in test.get("download_button")}
    assert {"HTML file", "PNG", "PDF"} <= labels


def test_the_policy_of_a_report_is_folded(filled_here: str) -> None:
    page = render(freeze_link("modes", **SIGNED))
    folded = page[page.index("<details>") : page.index("</details>")]
    assert re.match(r"<details><summary>Policy in force, \d+ rows</summary>", folded)
    assert "unchanged_margin" in folded
    assert "unchanged_margin" not in page.replace(folded, "")


def test_a_report_is_revoked_by_name(copied_url: str) -> None:
    report_id = frozen(copied_url)
    test = opened(Link(page=Page.REPORTS, report=report_id))
    test.button("revoke-yes").click().run()
    assert "Type your name" in texts(test)
    test.text_input("revoke-name").input("Bob").run()
    test.button("revoke-yes").click().run()
    assert not test.exception
    with open_database(copied_url, read_only=True) as database:
        report = REPORTS.get(database, report_id)
    assert (report.content, report.revoked_by) == (None, "Bob")
    assert shown(test)["state"][0].startswith("∅ revoked")
    assert "its page says that it is gone" in texts(test)


def test_nothing_frozen_and_a_wrong_id_say_so(copied_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEEP_DAYS_VARIABLE, "365")
    said = texts(opened(Link(page=Page.REPORTS)))
    assert "No report yet" in said
    assert "After 365 days the content of a report is deleted" in said
    frozen(copied_url)
    assert "There is no report abc" in texts(opened(Link(page=Page.REPORTS, report="abc")))


@pytest.mark.parametrize("page", [Page.COLD_START, Page.REGRESSIONS])
def test_a_page_is_frozen_from_its_menu(copied_url: str, page: Page) -> None:
    test = opened(Link(page=page))
    test.text_input("freeze-title").input("Kept")
    test.text_input("freeze-name").input("Ann")
    next(button for button in test.button if button.label == "Freeze").click().run()
    assert not test.exception
    with open_database(copied_url, read_only=True) as database:
        rows = reports_frame(database)
    assert rows[["title", "created_by"]].values.tolist() == [["Kept", "Ann"]]
    with open_database(copied_url, read_only=True) as database:
        report = REPORTS.get(database, rows["report_id"][0])
    check_page(render(Content.model_validate(report.content)))
    assert f"/report/{report.report_id}" in texts(test)


def test_one_trial_is_frozen_with_its_samples_and_its_record(filled_here: str) -> None:
    with open_database(filled_here, read_only=True) as database:
        trials = latest_trials_frame(database, Filters())
    ok = trials[trials["status"] == "ok"]["trial_id"].iloc[0]
    content = freeze_link(href(Link(page=Page.TRIAL, trial=str(ok))), **SIGNED)
    check_page(render(content))
    assert content.data["trial"]["trial_id"] == ok
    json.dumps(content.model_dump(mode="json"), allow_nan=False)
    with pytest.raises(ReportError, match="no trial"):
        freeze_link(href(Link(page=Page.TRIAL, trial="nothing")), **SIGNED)


def test_the_guide_and_the_reports_are_not_frozen(filled_here: str) -> None:
    for page in set(Page) - FREEZABLE:
        with pytest.raises(ReportError, match="cannot be frozen"):
            freeze_link(page.value, **SIGNED)
