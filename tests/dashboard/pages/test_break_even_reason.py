"""Why a case never pays off: one sentence on the page, in JSON, in CSV and in the terminal."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette

from dashboard.api.routes import routes
from dashboard.links.links import Link, Page
from db.engine.session import open_database
from db.store.trials import save_trials
from runner.cli.app import app as command_line
from runner.cli.front import exit_code_of
from tests.builders import MS, make_history
from tests.dashboard.asking import ask
from tests.dashboard.conftest import DATABASE, opened, texts

REASON = "its median latency, 18.1 ms, is not below eager's, 12.1 ms"


def test_a_case_that_never_pays_off_has_its_reason_everywhere(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slower = make_history(
        workloads=("mlp",),
        latency_ns=lambda _workload, strategy, _run: 12 * MS if strategy == "eager" else 18 * MS,
    )
    with open_database(sqlite_url) as database:
        save_trials(database, slower)
    monkeypatch.setenv(DATABASE, sqlite_url)
    assert f"mlp with default: break-even is never, {REASON}" in texts(
        opened(Link(page=Page.BREAK_EVEN, focus="mlp"))
    )
    api = Starlette(routes=routes())
    rows = ask(api, "/api/v1/break-even").json["rows"]
    table = ask(api, "/api/v1/break-even", {"format": "csv"}).table
    assert {row["strategy"]: row["reason"] for row in rows} == {"eager": None, "default": REASON}
    assert {row["strategy"]: row["reason"] for row in table} == {"eager": "", "default": REASON}
    capsys.readouterr()
    assert exit_code_of(command_line, ["break-even", "--db", sqlite_url]) == 0
    assert REASON in capsys.readouterr().out
