"""How break-even moved from build to build, where there are more builds than a page has room for."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from dashboard.database import DATABASE_VARIABLE
from dashboard.links import Link, Page
from dashboard.views import break_even_history
from db.session import open_database
from db.store import save_trials
from tests.builders import make_history
from tests.dashboard.conftest import opened, texts

RELEASES = ("2.10.0", "2.11.0", "2.12.0", "2.13.0")


@pytest.fixture
def four_releases(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_database(sqlite_url) as database:
        save_trials(database, make_history(workloads=("mlp",), builds=RELEASES))
    monkeypatch.setenv(DATABASE_VARIABLE, sqlite_url)


def names_of_builds() -> tuple[list[str], str]:
    """The builds of the table, from top to bottom, and what the page says."""
    page = opened(Link(page=Page.BREAK_EVEN, focus="mlp"))
    assert not page.exception
    (history,) = [table.value for table in page.dataframe if "build" in table.value.columns]
    return list(history["build"]), texts(page)


@pytest.mark.usefixtures("four_releases")
def test_all_builds_stand_in_the_table_newest_first() -> None:
    builds, said = names_of_builds()
    assert builds == [f"torch {release}" for release in reversed(RELEASES)]
    assert "The newest" not in said


@pytest.mark.usefixtures("four_releases")
def test_of_many_builds_the_newest_are_shown_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(break_even_history, "MOST_BUILDS", 2)
    builds, said = names_of_builds()
    assert builds == ["torch 2.13.0", "torch 2.12.0"]
    assert "The newest 2 of 4 builds." in said


def test_a_history_without_a_number_is_told_in_words_alone(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = make_history(
        workloads=("mlp",),
        builds=RELEASES,
        latency_ns=lambda _workload, strategy, _run: 12e6 if strategy == "eager" else 18e6,
    )
    with open_database(sqlite_url) as database:
        save_trials(database, history)
    monkeypatch.setenv(DATABASE_VARIABLE, sqlite_url)
    page = opened(Link(page=Page.BREAK_EVEN, focus="mlp"))
    assert not page.exception
    (words,) = [table.value for table in page.dataframe if "build" in table.value.columns]
    assert set(words["default"]) == {"never"}
    assert "Break-even on mlp is as it was before torch 2.13.0" in texts(page)
    assert not [chart for chart in page.get("vega_lite_chart") if "over builds" in chart.proto.alt]


def test_no_line_leads_across_builds_that_never_pay_off(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled is faster with the first and the last release alone."""
    history = make_history(
        workloads=("mlp",),
        builds=("2.9.0", *RELEASES),
        latency_ns=lambda _workload, strategy, run: (
            12e6 if strategy == "eager" else 8e6 if run in (0, 4) else 18e6
        ),
    )
    with open_database(sqlite_url) as database:
        save_trials(database, history)
    monkeypatch.setenv(DATABASE_VARIABLE, sqlite_url)
    page = opened(Link(page=Page.BREAK_EVEN, focus="mlp"))
    assert not page.exception
    (chart,) = [each.proto for each in page.get("vega_lite_chart") if "over builds" in each.proto.alt]
    (main,) = [each for each in chart.datasets if each.name == "main"]
    rows = pa.ipc.open_stream(main.data.data).read_all().to_pylist()
    assert [row["build"] for row in rows] == ["torch 2.9.0", "torch 2.13.0"]
    assert len({row["stretch"] for row in rows}) == 2
    layers = json.loads(chart.spec)["layer"]
    connecting = [layer["encoding"] for layer in layers if layer["mark"]["type"] in ("line", "area")]
    assert [encoding["detail"]["field"] for encoding in connecting] == ["stretch", "stretch"]
    everywhere = [f"torch {release}" for release in ("2.9.0", *RELEASES)]
    assert all(encoding["x"]["scale"]["domain"] == everywhere for encoding in connecting)
    assert "No number: never with torch 2.10.0 to torch 2.12.0." in texts(page)


def test_trends_over_builds_names_those_that_have_no_number(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = make_history(
        workloads=("mlp",),
        builds=RELEASES,
        latency_ns=lambda _workload, strategy, run: (
            18e6 if strategy != "eager" and run in (1, 2) else 12e6 if strategy == "eager" else 8e6
        ),
    )
    with open_database(sqlite_url) as database:
        save_trials(database, history)
    monkeypatch.setenv(DATABASE_VARIABLE, sqlite_url)
    page = opened(Link(page=Page.TRENDS, metric="break_even", axis="torch"))
    assert not page.exception
    assert "No number: never with torch 2.11.0, torch 2.12.0." in texts(page)
    spec = page.get("vega_lite_chart")[0].proto.spec
    assert all(f"torch {release}" in spec for release in RELEASES)
