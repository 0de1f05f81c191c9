"""The machine's control series is no case: no page is opened on it, and none lists it beside workloads."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.links.links import Link, Page
from db.engine.session import open_database
from db.store.trials import save_trials
from tests.builders import make_history
from tests.dashboard.conftest import DATABASE, opened, texts


@pytest.fixture
def url(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path / 'canaries.db'}"
    with open_database(address, migrate=True) as database:
        save_trials(database, make_history(workloads=("mlp",), builds=("2.13.0",)))
        canaries = make_history(workloads=("canary-copy",), strategies=("eager",), builds=("2.13.0",), seed=3)
        save_trials(database, canaries)
    return address


@pytest.mark.parametrize("page", [Page.TRENDS, Page.COLD_START, Page.OVERVIEW, Page.MODES, Page.BREAK_EVEN])
def test_no_page_opens_on_the_control_series(url: str, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATABASE, url)
    shown = opened(Link(page))
    chosen = [str(box.value) for box in shown.main.selectbox]
    tables = [table.value.to_string() for table in shown.main.dataframe]
    everything = "\n".join([texts(shown), *chosen, *tables])
    assert "canary" not in everything
    assert "mlp" in everything
