"""The smallest change that a machine shows, beside the figures that are read with it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.document.content import Lines
from dashboard.links.links import Link, Page, href
from dashboard.pages.registry import CONTENTS
from dashboard.parts.parts import Table
from dashboard.read.data import read_choices
from dashboard.read.snapshots import Snapshot
from dashboard.render.shell import resolved_view
from dashboard.reports.freeze import freeze_link
from db.judge.compare.noise_floor import VALIDATION_SUITE
from tests.builders import MS, START, make_history, make_trial
from tests.dashboard.conftest import DATABASE, Store, opened, texts

FLOOR = "Smallest detectable change with 5 trials a side: "
# (ln 1.00, ln 1.01, ln 1.02) twice: standard deviation 0.008871; x 4.455 x sqrt(2 / 5) = 2.5 %. Eager moves
# as far, so their ratio does not.
BOTH = f"{FLOOR}latency 2.50 %, speedup 0 %. 3 % in latency needs 4 trials."


@pytest.fixture(scope="module")
def floor_url(store_once: Store) -> str:
    history = make_history(workloads=("mlp",), builds=("2.12.0", "2.13.0"))
    validation = [
        make_trial(
            workload="encoder",
            suite=VALIDATION_SUITE,
            run_id="run-validate",
            started_at=START - timedelta(days=1, minutes=number),
            latency_ns=10 * MS * (1 + 0.01 * (number % 3)),
            control_latency_ns=20 * MS * (1 + 0.01 * (number % 3)),
            spread=0.0,
        )
        for number in range(6)
    ]
    return store_once([*history, *validation])


@pytest.fixture
def url(floor_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(DATABASE, floor_url)
    return floor_url


def test_the_overview_says_what_can_be_seen(url: str) -> None:
    assert BOTH in texts(opened(Link(page=Page.OVERVIEW)))


@pytest.mark.parametrize(
    ("metric", "said"), [("latency", "latency 2.50 %."), ("speedup", "speedup 0 %."), ("peak_memory", None)]
)
def test_trends_says_it_of_the_figure_that_is_shown(url: str, metric: str, said: str | None) -> None:
    shown = texts(opened(Link(page=Page.TRENDS, metric=metric)))
    assert (f"{FLOOR}{said}" in shown) if said else (FLOOR not in shown)


CASES = {
    Page.OVERVIEW: "overview-table",
    Page.TRENDS: "trend-table",
    Page.MODES: "modes-best",
    Page.BREAK_EVEN: "break-even-table",
}


@pytest.mark.parametrize("page", [*CASES, Page.UPGRADE], ids=str)
def test_every_table_of_cases_has_noise_floor_and_trials(url: str, page: Page) -> None:
    tables = tables_of(replace(Link(page=page, workload=("mlp",)), metric="latency"))
    (table,) = (each for each in tables if each.key == CASES.get(page, "upgrade-cases"))
    assert {"noise", "trials"} <= set(table.titled)
    assert list(table.frame["noise"]) == pytest.approx([0.025] * len(table.frame), abs=5e-5)
    assert set(table.frame["trials"]) == {(3, 3) if page is Page.UPGRADE else 3}
    for each in tables:
        if {"workload", "strategy"} <= set(each.columns) and each.key not in {"left-out", "production-table"}:
            assert "trials" in each.titled, each.key


def test_a_floor_that_nobody_measured_is_no_column(filled_here: str) -> None:
    (table,) = (each for each in tables_of(Link(page=Page.MODES, goal="memory")) if each.key == "modes-best")
    assert "noise" not in table.titled
    assert "trials" in table.titled


def tables_of(link: Link) -> list[Table]:
    """The tables of the page as it opens, those of its report's appendix last."""
    snapshot = Snapshot.now()
    choices = read_choices(snapshot)
    link = resolved_view(link, snapshot, choices).link
    content = CONTENTS[link.page](snapshot, link)
    return [part for part in (*content.parts, *content.appendix()) if isinstance(part, Table)]


def test_a_frozen_overview_keeps_it(url: str) -> None:
    content = freeze_link(href(Link(page=Page.OVERVIEW)), title=None, by="ann", at=datetime.now(UTC))
    assert BOTH in [line for part in content.sections if isinstance(part, Lines) for line in part.lines]
