"""Who writes, and the database that is written to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compilewatch.dashboard.login.access import Person, Role, identify_people_by
from tests.dashboard.conftest import DATABASE


@pytest.fixture
def viewer() -> Iterator[None]:
    """Whoever opens a page may read only."""
    identify_people_by(lambda _headers: Person("Vera", Role.VIEWER))
    yield
    identify_people_by(None)


@pytest.fixture
def url(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty database, which pages read."""
    monkeypatch.setenv(DATABASE, sqlite_url)
    return sqlite_url
