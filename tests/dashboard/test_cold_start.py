"""The page of cold starts over more cases than a chart has room for."""

from __future__ import annotations

import pytest

from dashboard.charts.cold_start import MOST_CASES, drawn, frame
from dashboard.database import DATABASE_VARIABLE
from dashboard.links import Link, Page
from db.queries.trials import cold_start_frame
from db.session import open_database
from db.store import save_trials
from tests.builders import make_history, make_trial
from tests.dashboard.conftest import opened, texts

STRATEGIES = ("eager", "default", "reduce-overhead", "max-autotune")
WORKLOADS = tuple(f"model-{number}" for number in range(7))
CASES = len(STRATEGIES) * len(WORKLOADS)


@pytest.fixture
def many_cases(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    with open_database(sqlite_url) as database:
        trials = make_history(workloads=WORKLOADS, strategies=STRATEGIES, builds=("2.13.0",))
        slow = make_trial(workload="slow-start", compile_ns=90_000_000_000)
        save_trials(database, [*trials, slow])
    monkeypatch.setenv(DATABASE_VARIABLE, sqlite_url)
    return sqlite_url


def test_the_slowest_cases_have_bars_and_the_table_has_all(many_cases: str) -> None:
    page = opened(Link(page=Page.COLD_START))
    assert not page.exception
    assert f"The {MOST_CASES} slowest of {CASES + 1} cases. The table has all" in texts(page)
    (table,) = page.dataframe
    assert len(table.value) == CASES + 1


def test_few_cases_have_a_bar_each(many_cases: str) -> None:
    page = opened(Link(page=Page.COLD_START, focus=WORKLOADS[0]))
    assert not page.exception
    assert "slowest of" not in texts(page)


def test_those_that_take_longest_come_first_with_all_their_phases(many_cases: str) -> None:
    with open_database(many_cases, read_only=True) as database:
        long = cold_start_frame(database)
    every = frame(long, dict(zip(long["workload_id"], long["workload"], strict=True)))
    kept = drawn(every)
    sums = every.groupby("case")["seconds"].sum()
    shown = kept.rows.groupby("case")["seconds"].sum()[list(kept.cases)]
    assert len(kept.cases) == MOST_CASES
    assert kept.cases[0] == "slow-start · default"
    assert list(shown) == sorted(shown, reverse=True)
    assert shown.min() >= sums.drop(shown.index).max()
    assert shown.to_dict() == pytest.approx(sums[shown.index].to_dict())
