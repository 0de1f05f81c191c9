"""The user that docs/deployment.md makes for a dashboard reads every page and writes nothing."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.read.database import close_databases
from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import DatabaseError
from compilewatch.db.queries.records import trial_records
from compilewatch.db.records.requests import RequestKind, RequestSpec
from compilewatch.db.service.requests import new_request, save_request
from compilewatch.db.store.trials import save_trials
from tests.builders import make_trial
from tests.dashboard.conftest import DATABASE, opened

DOCUMENTED = Path(__file__).parents[3] / "docs" / "deployment.md"


def documented_sql() -> str:
    (block,) = re.findall(r"```sql\n(.*?)```", DOCUMENTED.read_text(encoding="utf-8"), re.DOTALL)
    return block


@pytest.fixture
def reader_url(postgres_database_url: str, filled_url: str) -> Iterator[str]:
    """The address of a database with trials, for a role made by the documented statements."""
    with open_database(filled_url) as source, open_database(postgres_database_url) as target:
        save_trials(target, trial_records(source))
    name = postgres_database_url.partition("?")[0].rpartition("/")[2]
    role, password = f"reader_{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    statements = (
        documented_sql()
        .replace("compilewatch_reader", role)
        .replace("'change-me'", f"'{password}'")
        .replace("DATABASE compilewatch ", f"DATABASE {name} ")
    )
    with psycopg.connect(postgres_database_url, autocommit=True) as connection:
        connection.execute(statements)  # type: ignore[arg-type]
        try:
            yield re.sub(r"//[^@]*@", f"//{role}:{password}@", postgres_database_url)
        finally:
            connection.execute(f"DROP OWNED BY {role}")  # type: ignore[arg-type]
            connection.execute(f"DROP ROLE {role}")  # type: ignore[arg-type]


def test_every_page_is_read_by_a_role_that_cannot_write(
    reader_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATABASE, reader_url)
    for page in Page:
        test = opened(Link(page=page))
        assert [element.value for element in test.error] == [], page
    request = new_request("r", RequestKind.MANUAL, RequestSpec(), by="ann", at=datetime.now(UTC))
    with open_database(reader_url) as database:
        with pytest.raises(DatabaseError):
            save_trials(database, [make_trial(trial_id="new")])
        with pytest.raises(DatabaseError):
            save_request(database, request)
    # Not even a session that turns the safety catch off.
    with psycopg.connect(reader_url) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.commit()
        for statement in (
            "DELETE FROM trial",
            "UPDATE data_version SET version = 0",
            "CREATE TABLE t (x int)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)  # type: ignore[arg-type]
            connection.rollback()


def test_pages_let_go_of_the_server_when_their_databases_are_closed(
    postgres_database_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATABASE, postgres_database_url)
    opened(Link(page=Page.OVERVIEW))
    name = postgres_database_url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        assert _connections(connection, name) > 0
        close_databases()
        # The server's process for a connection outlives it by a moment.
        deadline = time.monotonic() + 20
        while _connections(connection, name) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert _connections(connection, name) == 0


def _connections(connection: psycopg.Connection, name: str) -> int:
    asked = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'"
    return connection.execute(asked, (name,)).fetchone()[0]
