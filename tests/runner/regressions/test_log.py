"""From gate to message: told once, when a second run has confirmed it; a gate that may not write judges."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url

from compilewatch.db.engine.session import open_database
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import make_history
from tests.regression_cases import RUN_2, stepping_history
from tests.runner.webhook import webhook

BUILDS = ("2.12.0", "2.13.0", "2.13.0", "2.13.0")
TOKEN = "s3cr3t-t0ken"


@pytest.fixture
def inbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[dict[str, Any]]]:
    """What a webhook on loopback was sent; the configuration names it."""
    with webhook(f"/{TOKEN}") as receiving:
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.chdir(tmp_path)
        Path("compilewatch.toml").write_text(
            '[notify]\nbase_url = "https://watch.example.com"\n'
            f'[[channel]]\nname = "team"\nwebhook = "{receiving.address}"\n'
        )
        yield receiving.messages


def measured(url: str, *factors: float) -> None:
    with open_database(url) as database:
        save_trials(database, stepping_history(*factors, builds=BUILDS[: len(factors)]))


def gate(url: str) -> int:
    return exit_code_of(app, ["gate", "--db", url])


def test_a_regression_is_told_when_the_next_run_confirms_it_and_only_then(
    sqlite_url: str, inbox: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    measured(sqlite_url, 1.0, 1.4)
    gate(sqlite_url)
    assert inbox == []
    measured(sqlite_url, 1.0, 1.4, 1.4)
    gate(sqlite_url)
    (message,) = inbox
    assert message["title"].startswith(
        "2 cases regressed: torch 2.12.0 to torch 2.13.0 on gpu-box-3: latency 2 slower, "
    )
    assert message["link"].startswith("https://watch.example.com/upgrade?base=")
    measured(sqlite_url, 1.0, 1.4, 1.4, 1.4)
    gate(sqlite_url)
    gate(sqlite_url)
    assert len(inbox) == 1
    captured = capsys.readouterr()
    assert captured.err.count("Messages sent: 1.") == 1
    assert TOKEN not in captured.out + captured.err


def test_a_run_of_other_cases_leaves_a_suspicion_waiting(
    sqlite_url: str, inbox: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    measured(sqlite_url, 1.0, 1.4)
    gate(sqlite_url)
    other = make_history(workloads=("elementwise",), builds=("2.13.0",), seed=7)
    later = stepping_history(1.0, 1.4, 1.4, builds=BUILDS[:3])
    start = next(trial.started_at for trial in later if trial.run_id == RUN_2)
    with open_database(sqlite_url) as database:
        save_trials(
            database,
            [
                trial.model_copy(
                    update={"started_at": trial.started_at - other[0].started_at + start, "ended_at": None}
                )
                for trial in other
            ],
        )
    capsys.readouterr()
    assert gate(sqlite_url) == 2
    assert inbox == []
    assert exit_code_of(app, ["list", "regressions", "--db", sqlite_url]) == 0
    assert "confirmed" not in capsys.readouterr().out


@pytest.fixture
def reading_url(empty_postgres_url: str) -> Iterator[str]:
    """A user of the database who may look and not touch."""
    open_database(empty_postgres_url, migrate=True).close()
    role = f"reader_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(empty_postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
        yield make_url(empty_postgres_url).set(username=role, password=None).render_as_string()
        connection.execute(f"DROP OWNED BY {role}")
        connection.execute(f"DROP ROLE {role}")


def test_a_gate_that_may_only_read_still_judges(
    empty_postgres_url: str,
    reading_url: str,
    inbox: list[dict[str, Any]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    measured(empty_postgres_url, 1.0, 1.4)
    assert gate(reading_url) == 1
    captured = capsys.readouterr()
    assert "mlp (ungated) / default: latency" in captured.out
    assert "compilewatch: regressions were not recorded: The user of" in captured.err
    assert inbox == []
