"""A GPU's gated times on every page and in every report: what bounds a case, and what moved in it."""

from datetime import timedelta
from html import unescape
from statistics import median

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.charts import trend_rows
from dashboard.document.page import render
from dashboard.links.links import Link, Page, href
from dashboard.pages.modes import charts as heat_map
from dashboard.read.shaping import with_labels
from dashboard.reports.freeze import freeze_link
from db import units
from db.engine.session import open_database
from db.judge.compare.upgrade import compare_builds
from db.metrics.cases import summarize_cases
from db.metrics.trend import series_points
from db.queries.trials import trials_frame
from db.store.regressions import record_comparison
from db.verdicts.sides import resolve_side
from tests.builders import START, make_gated_history, make_history, make_machine
from tests.dashboard.conftest import DATABASE, Store, opened, texts

HISTORY = make_gated_history()
OF_CASES = [Page.OVERVIEW, Page.TRENDS, Page.UPGRADE, Page.MODES, Page.BREAK_EVEN, Page.COLD_START]
HOST_MOVED = "The device did not move in any of"


@pytest.fixture(scope="module")
def url(store_once: Store) -> str:
    return store_once(HISTORY)


@pytest.fixture
def database(url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(DATABASE, url)
    return url


def tables(test: AppTest) -> str:
    return " ".join(frame.value.to_csv() for frame in test.dataframe)


@pytest.mark.parametrize("page", OF_CASES)
def test_a_table_of_cases_says_what_bounds_each(database: str, page: Page) -> None:
    test = opened(Link(page=page))
    assert "host-bound" in tables(test)
    assert "device-bound" in tables(test)
    assert "Ungated" not in texts(test)


@pytest.mark.parametrize("page", [Page.OVERVIEW, Page.UPGRADE])
def test_a_report_says_what_bounds_each_case(database: str, page: Page) -> None:
    page_text = render(freeze_link(href(Link(page=page)), title=None, by="ann", at=START))
    assert "host-bound" in page_text
    assert "device-bound" in page_text
    assert "Ungated" not in page_text


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


def test_eager_alone_has_no_second_column(database: str) -> None:
    trial = next(each for each in HISTORY if each.timing.control is None)
    test = opened(Link(page=Page.TRIAL, trial=trial.trial_id))
    assert list(test.dataframe[0].value.columns) == ["name", "own", "samples"]


def test_a_list_of_trials_says_how_each_was_timed(database: str) -> None:
    link = Link(page=Page.TRIAL)
    assert {"gated, host-bound", "gated, device-bound"} == set(opened(link).dataframe[0].value["bound"])
    assert "gated, device-bound" in render(freeze_link(href(link), title=None, by="ann", at=START))


def test_a_recorded_regression_says_what_bounds_its_case(store: Store) -> None:
    with open_database(store(HISTORY)) as database:
        runs = [resolve_side(name, database) for name in ("torch=2.11.0", "torch=2.13.0")]
        record_comparison(database, compare_builds(trials_frame(database), *runs), at=START)
    test = opened(Link(page=Page.REGRESSIONS))
    inbox = next(frame.value for frame in test.dataframe if "cause" in frame.value)
    assert set(inbox["workload"]) == {"bert-base"}
    assert (set(inbox["bound"]), set(inbox["cause"])) == ({"host-bound"}, {"host"})


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


def test_tables_of_a_cpu_have_no_column_of_bounds(store: Store) -> None:
    store(make_history(machines=(make_machine("cpu-box", device="cpu"),), trials_per_case=1))
    for page in (Page.OVERVIEW, Page.TRIAL):
        test = opened(Link(page=page))
        assert len(test.dataframe) > 0
        assert [frame for frame in test.dataframe if "bound" in frame.value] == []


def test_one_trial_is_called_ungated_only_where_it_is(store: Store) -> None:
    newer = make_history(workloads=("mlp",), builds=("2.13.0",), start=START + timedelta(days=2))
    store([*HISTORY, *newer])
    for trial, ungated in ((HISTORY[-1], False), (newer[-1], True)):
        link = Link(page=Page.TRIAL, trial=trial.trial_id)
        assert ("Ungated: CUDA events" in texts(opened(link))) == ungated
        report = render(freeze_link(href(link), title=None, by="ann", at=START))
        assert ("Ungated: CUDA events" in report) == ungated


def test_a_mark_in_a_chart_says_how_its_case_was_timed(url: str) -> None:
    with open_database(url) as database:
        trials = trials_frame(database)
    cases = with_labels(summarize_cases(trials))
    cells = heat_map.cells(cases, {}, sorted(set(cases["workload_label"])))
    points = with_labels(series_points(trials))
    drawn = trend_rows.frame(points, "latency", dict.fromkeys(points["build_id"], "b"))
    for found in (cells, drawn):
        timing = found.groupby("workload")["timing_text"].agg(set)
        assert (timing["mlp"], timing["gpt2"]) == ({"gated, device-bound"}, {"gated, host-bound"})
