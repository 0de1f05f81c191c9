"""The page of one workload: the strategy to take, since when, and what went wrong, in one place."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.verdicts import history
from tests.builders import MS, START, make_failure, make_history, make_trial
from tests.dashboard.conftest import OpenPage, Store, opened, selector, texts


def test_it_answers_in_its_headline_and_shows_every_strategy(store: Store) -> None:
    store(
        make_history(workloads=("mlp", "bert"), strategies=("eager", "default"), builds=("2.12.0", "2.13.0"))
    )
    test = opened(Link(page=Page.WORKLOAD, focus="mlp"))
    headline = next(each.value for each in test.markdown if each.value.startswith("## :"))
    assert "default is 1.43x eager, pays after 1,653 steps" in headline
    assert "pays after" in headline
    table = test.dataframe[0].value
    assert set(table["strategy"]) == {"eager", "default"}
    assert list(table.columns[:5]) == ["strategy", "speedup", "rate", "latency", "first"]
    alts = [chart.proto.alt for chart in test.get("vega_lite_chart")]
    assert [alt.split(" ")[0] for alt in alts] == ["Speedup", "Total", "Phases"]


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
    monkeypatch.setattr(history, "MOST_POINTS", most)
    store(make_history(workloads=("mlp",), builds=("2.12.0",) * 4))
    shown = texts(opened(Link(page=Page.WORKLOAD, focus="mlp")))
    assert ("Only the newest 3 runs are drawn." in shown) is said
    assert ("are drawn" in shown) is said


def test_what_is_measured_rarely_keeps_its_older_points(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the newest runs alone only where these have as many points as are drawn."""
    monkeypatch.setattr(history, "MOST_POINTS", 3)
    weekly = make_history(workloads=("mlp",), builds=("2.12.0",) * 3)
    nightly = make_history(
        workloads=("bert",), builds=("2.12.0",) * 6, start=START + timedelta(hours=1), seed=1
    )
    store([*weekly, *nightly])
    shown = texts(opened(Link(page=Page.WORKLOAD, focus="mlp")))
    assert "are drawn" not in shown
    assert "Speedup of mlp with default" in shown


def test_a_workload_that_is_not_there_says_which_is_shown(filled: OpenPage) -> None:
    said = texts(filled(Link(page=Page.WORKLOAD, focus="nobody")))
    assert "nobody has nothing under these filters; showing" in said


@pytest.mark.parametrize("page", [Page.BREAK_EVEN, Page.TRENDS])
def test_what_changed_most_is_shown_first_and_chosen(page: Page, store: Store) -> None:
    """Not the first of the alphabet; and the box that chooses says what is shown."""

    def latency_ns(workload: str, strategy: str, run: int) -> float:
        return 10 * MS * (2 if (workload, strategy, run) == ("mlp", "default", 1) else 1)

    store(make_history(workloads=("bert", "mlp"), builds=("2.12.0", "2.13.0"), latency_ns=latency_ns))
    test = opened(Link(page=page))
    assert selector(test, "focus").value == "mlp"
    assert "mlp" in next(each.value for each in test.markdown if each.value.startswith("## :"))
