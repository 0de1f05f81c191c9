"""An interval of a change is called what the policy says: its level is not always 95 %."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.document.content import Table
from dashboard.links.links import Link, Page, href
from dashboard.read.policy import VARIABLE
from dashboard.reports.freeze import freeze_link
from db.engine.session import open_database
from db.judge.policy import Policy
from db.queries.facets import builds
from db.store.regressions import record_comparison
from tests.builders import START
from tests.dashboard.conftest import Store, opened
from tests.regression_cases import RUN_0, RUN_1, judged, stepping_history


@pytest.fixture
def url(store: Store, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two runs of two builds, judged at 90 %."""
    monkeypatch.setenv(VARIABLE, Policy(confidence=0.9).model_dump_json())
    return store(stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0")))


def titles(test: AppTest) -> set[str]:
    """What the columns of intervals are called."""
    columns = [json.loads(table.proto.columns) for table in test.dataframe]
    return {each["interval"]["label"] for each in columns if "interval" in each}


@pytest.mark.usefixtures("url")
def test_it_is_that_of_the_comparison_on_the_page() -> None:
    assert titles(opened(Link(page=Page.REGRESSIONS))) == {"90 % interval"}
    case = Link(page=Page.UPGRADE, metric="latency", focus="mlp", focus_strategy="default")
    assert titles(opened(case)) == {"90 % interval"}


def frozen(link: Link) -> set[str]:
    content = freeze_link(href(link), title=None, by="ann", at=START)
    tables = [each for each in content.sections if isinstance(each, Table)]
    return {column.title for each in tables for column in each.columns if "nterval" in column.title}


def test_a_report_keeps_that_of_its_own_comparison(url: str) -> None:
    with open_database(url, read_only=True) as database:
        base, head = builds(database).sort_values("torch")["build_id"]
    assert frozen(Link(page=Page.UPGRADE, base=base, head=head)) == {"90 % interval"}


def test_of_what_was_recorded_it_is_not_known(url: str) -> None:
    with open_database(url) as database:
        record_comparison(database, judged(database, RUN_0, RUN_1), at=START)
    assert titles(opened(Link(page=Page.REGRESSIONS))) == {"Interval"}
    assert frozen(Link(page=Page.REGRESSIONS)) == {"Interval"}
