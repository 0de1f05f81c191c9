"""The database of a queue."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compilewatch.db.engine.session import Database, open_database


@pytest.fixture
def database(postgres_database_url: str) -> Iterator[Database]:
    with open_database(postgres_database_url) as database:
        yield database
