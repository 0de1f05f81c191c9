"""Served dashboards for all browser tests and a browser for each file; they skip where Chromium is absent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from db.engine.session import open_database
from db.store.regressions import record_comparison
from db.store.trials import save_trials
from tests.builders import START
from tests.dashboard.conftest import empty_url, filled_url, recorded_url
from tests.dashboard.serving import Served, served
from tests.regression_cases import RUN_0, RUN_1, judged, stepping_history

__all__ = ["empty_url", "filled_url", "recorded_url"]


@pytest.fixture(scope="session")
def dashboard_server(filled_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(filled_url, tmp_path_factory.mktemp("e2e") / "log") as running:
        yield running


@pytest.fixture(scope="session")
def recorded_server(recorded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The same with recorded regressions and reports, so that every page has something to show."""
    with served(recorded_url, tmp_path_factory.mktemp("e2e") / "recorded.log") as running:
        yield running


@pytest.fixture(scope="module")
def regressed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two builds, the second slower, its regressions recorded: of each file its own, to triage them."""
    path = tmp_path_factory.mktemp("regressed") / "results.db"
    with open_database(f"sqlite:///{path}", migrate=True) as database:
        save_trials(database, stepping_history(1.0, 1.2, builds=("2.12.0", "2.13.0")))
        record_comparison(database, judged(database, RUN_0, RUN_1), at=START)
    return path


@pytest.fixture(scope="module")
def regressed_server(regressed: Path) -> Iterator[Served]:
    with served(f"sqlite:///{regressed}", regressed.with_suffix(".log")) as running:
        yield running
