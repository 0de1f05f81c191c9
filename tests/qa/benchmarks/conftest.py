"""The large histories, on both backends; how to choose sizes: `large_databases`."""

from __future__ import annotations

import pytest

from tests.qa.benchmarks.large_databases import postgresql_history, sizes, sqlite_history


@pytest.fixture(scope="module", params=sizes(), ids=lambda size: f"{size:_}")
def size(request: pytest.FixtureRequest) -> int:
    trials: int = request.param
    return trials


@pytest.fixture(scope="module")
def history_url(request: pytest.FixtureRequest, backend: str, size: int) -> str:
    if backend == "sqlite":
        return sqlite_history(size)
    return postgresql_history(request.getfixturevalue("postgres_url"), size)
