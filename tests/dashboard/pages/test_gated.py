"""A GPU's gated times on every page and in every report: what bounds a case, and what moved in it."""

from datetime import timedelta
from html import unescape
from statistics import median

import pytest
from streamlit.testing.v1 import AppTest

from compilewatch.dashboard.document.page import render
from compilewatch.dashboard.links.links import Link, Page, href
from compilewatch.dashboard.reports.freeze import freeze_link
from compilewatch.db import units
from compilewatch.db.engine.session import open_database
from compilewatch.db.verdicts.sides import resolve_side
from tests.builders import START, make_gated_history, make_history
from tests.dashboard.conftest import DATABASE, Store, opened, texts

HISTORY = make_gated_history()
HOST_MOVED = "8 unchanged, 6 undecided. Host issue time: 1 slower"


@pytest.fixture(scope="module")
def url(store_once: Store) -> str:
    return store_once(HISTORY)


@pytest.fixture
def database(url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(DATABASE, url)
    return url


def test_the_upgrade_says_that_the_host_moved_and_the_device_did_not(database: str) -> None:
    focus = Link(page=Page.UPGRADE, metric="latency", focus="bert-base", focus_strategy="default")
    test = opened(focus)
    assert HOST_MOVED in texts(test)
    evidence = next(frame.value for frame in test.dataframe if "metric" in frame.value)
    rows = evidence.set_index("metric")
    assert "unchanged" in rows.loc["Device time", "verdict"]
    assert "regressed" in rows.loc["Host issue time", "verdict"]
    assert "The device did not move (" in rows.loc["Latency", "reason"]
    assert ", the host did (+1" in rows.loc["Latency", "reason"]
    page_text = render(freeze_link(href(focus), title=None, by="ann", at=START))
    assert HOST_MOVED in page_text
    assert ", the host did (+1" in page_text


def test_the_trial_shows_four_times_of_both_sides_and_how_they_were_taken(database: str) -> None:
    trial = next(each for each in HISTORY if each.workload.name == "gpt2" and each.timing.control)
    link = Link(page=Page.TRIAL, trial=trial.trial_id)
    test = opened(link)
    times = test.dataframe[0].value.set_index("name")
    assert list(times.index) == [
        "Device time",
        "Host issue time",
        "Wall time (synchronised)",
        "Wall time (pipelined)",
    ]
    assert list(times["samples"]) == ["12"] * 4
    assert times.loc["Device time", "own"] == units.duration(median(trial.device_ns))
    assert times.loc["Device time", "eager"] == units.duration(median(trial.control_device_ns))
    speedup = median(trial.control_issue_ns) / median(trial.issue_ns)
    assert times.loc["Host issue time", "speedup"] == units.ratio(speedup)
    facts = test.dataframe[1].value.set_index("name")
    assert facts.loc["Verified samples", "own"] == "11 of 12 (91.7 %)"
    assert facts.loc["SM clock (MHz)", "eager"] == "1830 · 1980 · 1980"
    assert "Host-bound: a pipelined step takes" in texts(test)
    assert "relative error 0.38 %, 3.8 x eager's, about one bf16 step" in tables_of_pairs(test)
    report = unescape(render(freeze_link(href(link), title=None, by="ann", at=START)))
    for said in (
        "Host-bound: a pipelined step takes",
        "11 of 12 (91.7 %)",
        "about one bf16 step",
        "Launches per step",
    ):
        assert said in report


def tables_of_pairs(test: AppTest) -> str:
    return " ".join(table.value.to_csv() for table in test.table)


def test_ungated_and_gated_times_are_not_compared_and_the_page_says_why(store: Store) -> None:
    older = make_history(workloads=("bert-base", "mlp"), builds=("2.10.0",), start=START - timedelta(days=9))
    with open_database(store([*older, *HISTORY])) as database:
        base, head = (resolve_side(name, database) for name in ("torch=2.10.0", "torch=2.13.0"))
    link = Link(page=Page.UPGRADE, base=base.build_ids[0], head=head.build_ids[0])
    test = opened(link)
    assert "differs in timing method (ungated against gated)" in texts(test)
    assert "0 of " in texts(test)
    report = render(freeze_link(href(link), title=None, by="ann", at=START))
    assert "differs in timing method (ungated against gated)" in report
