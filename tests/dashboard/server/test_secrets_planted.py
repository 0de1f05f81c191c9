"""Secrets of a real server: in no answer, header, log, export, backup or report, in good times and bad."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from starlette.applications import Starlette

from compilewatch.dashboard.api.endpoints import ENDPOINTS, PREFIX
from compilewatch.dashboard.links.links import Page
from compilewatch.dashboard.reports.routes import reports
from compilewatch.db.engine.session import open_database
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import make_history
from tests.dashboard.asking import ask
from tests.dashboard.serving import Served, served

PASSWORD = "pl4nted-pa55word"
OTHER = "pl4nted-0ther"
# Whoever starts a dashboard has more in the environment than the dashboard needs.
ENVIRONMENT = {
    "PGPASSWORD": PASSWORD,
    "COMPILEWATCH_AUTH__BASE_URL": "https://compilewatch.example",
    "COMPILEWATCH_AUTH__ISSUER": "https://login.example",
    "COMPILEWATCH_AUTH__CLIENT_ID": "compilewatch",
    "COMPILEWATCH_AUTH__CLIENT_SECRET": OTHER,
    "COMPILEWATCH_AUTH__ROLES__EVERYONE": "viewer",
    "AWS_SECRET_ACCESS_KEY": OTHER,
    "HF_TOKEN": OTHER,
}
PLANTED = re.compile(f"{PASSWORD}|{OTHER}".encode())
# A path parameter that finds something, and one that does not.
PATHS = [
    *(f"/{page.value}" for page in Page),
    *(PREFIX + re.sub(r"\{\w+\}", "none-such", each.path) for each in ENDPOINTS),
    *(f"{PREFIX}/{name}" for name in ("compare?base=previous&head=latest", "trials?cursor=x", "runs?nope=1")),
    f"{PREFIX}/openapi.json",
    "/healthz",
    "/metrics",
    "/badge/bert-base/default.svg",
    "/report/none-such",
    "/nowhere/at/all",
    "/_stcore/host-config",
]


Command = Callable[..., str]


@pytest.fixture
def planted_url(postgres_database_url: str) -> str:
    """A database with trials, and its address with the password in it."""
    url = re.sub(r"//([^:@/]*)(:[^@/]*)?@", rf"//\1:{PASSWORD}@", postgres_database_url)
    assert PASSWORD in url
    with open_database(url) as database:
        save_trials(database, make_history())
    return url


def answers(server: Served) -> bytes:
    told = [server.get(path) for path in PATHS]
    return b"\n".join(b"%d %s %s" % (each.status, str(each.headers).encode(), each.body) for each in told)


@pytest.fixture
def command(
    planted_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Command:
    """Runs a command in a folder of its own, with the secrets in its environment; what it said."""
    monkeypatch.chdir(tmp_path)
    for name, value in {**ENVIRONMENT, "COMPILEWATCH_DATABASE_URL": planted_url}.items():
        monkeypatch.setenv(name, value)

    def run(*words: str) -> str:
        code = exit_code_of(app, list(words))
        said = capfd.readouterr()
        assert code == 0, said.err
        return said.out + said.err

    return run


def found_in(folder: Path) -> list[str]:
    """The files below `folder` that hold a secret."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [str(path) for path in files if PLANTED.search(path.read_bytes())]


def test_no_answer_and_no_line_of_the_server_holds_a_secret(
    planted_url: str, postgres_database_url: str, tmp_path: Path
) -> None:
    name = planted_url.rpartition("/")[2].partition("?")[0]
    administration = postgres_database_url.replace(name, "postgres")
    with served(planted_url, tmp_path / "log", **ENVIRONMENT) as server:
        told = answers(server)
        with psycopg.connect(administration, autocommit=True) as connection:
            connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
            )
            try:
                deadline = time.monotonic() + 30
                while server.get("/healthz").status == 200:
                    assert time.monotonic() < deadline, "the database does not go away"
                    time.sleep(0.2)
                away = answers(server)
            finally:
                connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    assert told.count(b"200 ") > 10
    assert not PLANTED.search(told)
    assert away.count(b"503 ") > 10
    assert not PLANTED.search(away)
    assert "cannot be read" in (tmp_path / "log").read_text()
    assert found_in(tmp_path) == []


def test_nothing_that_is_taken_along_holds_a_secret(command: Command, tmp_path: Path) -> None:
    """Exports, a backup, a frozen report as it is served (and exported), and what commands say of them."""
    said = command("export", "--output", "history.jsonl")
    said += command("export", "--format", "csv", "--output", "history.csv")
    made = re.search(r"cwt_\S+", command("token", "create", "grafana", "--by", "ada"))
    said += command("token", "list") + command("db", "backup", "monday.db")
    frozen = command("report", "create", "--compare", "previous", "latest", "--by", "ada")
    report_id = re.search(r"[0-9a-f]{32}", frozen)
    said += frozen
    shown = ask(Starlette(routes=[reports()]), f"/report/{report_id[0]}")
    assert shown.status == 200
    assert not PLANTED.search(said.encode() + shown.body)
    assert found_in(tmp_path) == []
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert made[0].encode() not in kept + said.encode()
