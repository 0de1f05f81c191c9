"""The page of one workload: the strategy to take, since when, and what went wrong, in one place."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from compilewatch.dashboard.charts import trend_rows
from compilewatch.dashboard.links.links import MODELS, Link, Page, beside
from compilewatch.dashboard.reports.freeze import freeze_link
from compilewatch.db.columns.metrics import HISTORY_METRICS
from tests.builders import MS, START, make_failure, make_history, make_trial
from tests.dashboard.conftest import DATABASE, OpenPage, Store, opened, selector, texts


def test_it_answers_in_its_headline_and_shows_every_strategy(store: Store) -> None:
    store(
        make_history(workloads=("mlp", "bert"), strategies=("eager", "default"), builds=("2.12.0", "2.13.0"))
    )
    test = opened(Link(page=Page.WORKLOAD, focus="mlp"))
    headline = next(each.value for each in test.markdown if each.value.startswith("## :"))
    assert "default is 1.43x eager, pays after about 1,700 steps" in headline
    assert [chart.proto.alt for chart in test.get("vega_lite_chart")] == [
        "Latency of mlp, over time, by strategy"
    ]
    table = test.dataframe[0].value
    assert set(table["strategy"]) == {"eager", "default"}
    assert "workload" not in table.columns


def test_what_is_known_of_it_stands_above_every_tab(store: Store) -> None:
    store(make_history(workloads=("mlp",), builds=("2.12.0", "2.13.0"), trials_per_case=5))
    known = {}
    for page in MODELS:
        test = opened(Link(page=page, focus="mlp"))
        (known[page],) = (each.value for each in test.markdown if each.value.startswith("training with "))
        shown = [tab.label for tab in test.tabs]
        assert shown == ["History", "Modes", "Cold start", "Break-even", "Sizes", "Machines", "Trials"]
        assert test.title[0].value == "Models"
    assert len(set(known.values())) == 1, known
    assert re.fullmatch(
        r"training with default · 1\.4\dx eager \[1\.4\dx, 1\.4\dx\] · break-even about 1,\d00 "
        r"\[.*\] steps · first result .* s · .* % · peak .*",
        known[Page.MODES].replace("\\", ""),
    ), known


def test_its_modes_are_every_strategy(store: Store) -> None:
    store(make_history(workloads=("mlp", "bert"), builds=("2.13.0",)))
    table = opened(Link(page=Page.MODES, focus="mlp")).dataframe[0].value
    assert set(table["strategy"]) == {"eager", "default"}
    assert list(table.columns[:5]) == ["strategy", "speedup", "rate", "latency", "first"]


def test_another_tab_keeps_what_means_anything_there(store: Store) -> None:
    store(make_history(workloads=("mlp",), strategies=("eager", "default", "max-autotune")))
    link = Link(page=Page.WORKLOAD, focus="mlp", strategy=("default",), metric="speedup", suite="standard")
    there = beside(link, Page.COLD_START)
    assert there == Link(page=Page.COLD_START, focus="mlp", strategy=("default",), suite="standard")


def test_a_report_of_one_model_has_its_tabs(store: Store) -> None:
    store(make_history(workloads=("mlp",), builds=("2.12.0", "2.13.0")))
    content = freeze_link("workload?focus=mlp", title=None, by="ann", at=START)
    titles = [getattr(section, "title", "") for section in content.sections]
    assert {"Modes", "Cold start", "Break-even"} <= set(titles)
    assert "Sizes" not in titles, "it was measured at one"


@pytest.mark.parametrize(
    ("share", "icon", "said"),
    [(1.5, "trending_down", "stay eager, it is the fastest"), (1.0, "help", "no strategy is shown to be")],
)
def test_eager_is_the_fastest_only_where_it_is_shown(
    store: Store, share: float, icon: str, said: str
) -> None:
    def latency_ns(_workload: str, strategy: str, _run: int) -> float:
        return 12 * MS * (1 if strategy == "eager" else share)

    store(make_history(workloads=("mlp",), latency_ns=latency_ns, between_trials=0.05))
    test = opened(Link(page=Page.WORKLOAD, focus="mlp"))
    headline = next(each.value for each in test.markdown if each.value.startswith("## :"))
    assert icon in headline
    assert said in headline


def test_its_last_failure_is_named_with_all_there_were(store: Store) -> None:
    failed = make_trial(workload="mlp", failure=make_failure())
    store([*make_history(workloads=("mlp",), strategies=("eager", "default")), failed])
    said = texts(opened(Link(page=Page.WORKLOAD, focus="mlp")))
    assert "Last failure" in said
    assert "1 failed trial in all" in said


@pytest.mark.parametrize(("most", "said"), [(3, True), (4, False)])
def test_its_history_says_what_it_leaves_out(
    store: Store, monkeypatch: pytest.MonkeyPatch, most: int, said: bool
) -> None:
    monkeypatch.setattr(trend_rows, "MOST_POINTS", 2 * most)
    store(make_history(workloads=("mlp",), builds=("2.12.0",) * 4))
    shown = texts(opened(Link(page=Page.WORKLOAD, focus="mlp")))
    assert ("The newest 3 of 4 runs are drawn." in shown) is said
    assert ("are drawn" in shown) is said


def test_what_is_measured_rarely_keeps_its_older_points(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the newest runs alone only where these have as many points as are drawn."""
    monkeypatch.setattr(trend_rows, "MOST_POINTS", 6)
    weekly = make_history(workloads=("mlp",), builds=("2.12.0",) * 3)
    nightly = make_history(
        workloads=("bert",), builds=("2.12.0",) * 6, start=START + timedelta(hours=1), seed=1
    )
    store([*weekly, *nightly])
    shown = texts(opened(Link(page=Page.WORKLOAD, focus="mlp")))
    assert "are drawn" not in shown
    assert "Latency of every strategy" in shown


def test_a_workload_that_is_not_there_says_which_is_shown(filled: OpenPage) -> None:
    said = texts(filled(Link(page=Page.WORKLOAD, focus="nobody")))
    assert "nobody has nothing under these filters; showing" in said


def test_what_changed_most_is_shown_first_and_chosen(store: Store) -> None:
    """Not the first of the alphabet; and the box that chooses says what is shown."""

    def latency_ns(workload: str, strategy: str, run: int) -> float:
        return 10 * MS * (2 if (workload, strategy, run) == ("mlp", "default", 1) else 1)

    store(make_history(workloads=("bert", "mlp"), builds=("2.12.0", "2.13.0"), latency_ns=latency_ns))
    test = opened(Link(page=Page.BREAK_EVEN))
    assert selector(test, "focus").value == "mlp"
    assert "mlp" in next(each.value for each in test.markdown if each.value.startswith("## :"))
    over_time = texts(opened(Link(page=Page.WORKLOAD)))
    assert "Opened on the largest judged change since torch 2.12.0; 1 more workload below." in over_time


@pytest.fixture(scope="module")
def two_builds_url(store_once: Store) -> str:
    return store_once(make_history(workloads=("mlp",), builds=("2.12.0", "2.13.0")))


@pytest.mark.parametrize("metric", HISTORY_METRICS)
def test_every_figure_with_a_history_is_drawn_or_said_to_be_unknown(
    two_builds_url: str, monkeypatch: pytest.MonkeyPatch, metric: str
) -> None:
    monkeypatch.setenv(DATABASE, two_builds_url)
    opened(Link(page=Page.WORKLOAD, focus="mlp", metric=metric))
