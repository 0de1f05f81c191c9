"""`compilewatch db` and `compilewatch token`, as they are typed."""

from __future__ import annotations

import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.service.tokens import TOKENS, token_of
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import make_history


def typed(*words: str) -> int:
    return exit_code_of(app, list(words))


@pytest.fixture
def filled(sqlite_url: str) -> str:
    with open_database(sqlite_url) as database:
        save_trials(database, make_history(workloads=("mlp",)))
    return sqlite_url


def test_a_backup_is_made_checked_and_restored(
    filled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, back = tmp_path / "kept.db", f"sqlite:///{tmp_path / 'back.db'}"
    assert typed("db", "backup", str(kept), "--db", filled) == 0
    assert typed("db", "restore", str(kept), "--yes", "--db", back) == 0
    assert typed("db", "check", "--db", back) == 0
    assert typed("db", "vacuum", "--db", back) == 0
    told = capsys.readouterr().out
    assert f"{kept} holds everything (" in told
    assert "18 trials of" in told
    assert "back.db is sound." in told


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_what_nobody_confirms_changes_nothing(
    filled: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
) -> None:
    kept, back = tmp_path / "kept.db", tmp_path / "back.db"
    assert typed("db", "backup", str(kept), "--db", filled) == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert typed("db", "restore", str(kept), "--db", f"sqlite:///{back}") == 2
    told = capsys.readouterr().err
    assert str(back) in told
    assert "Nothing was changed." in told
    assert not back.exists()


def test_damage_ends_with_one_and_says_what_to_do(filled: str, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(filled.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute("UPDATE trial SET latency_ns = 1.0")
    connection.close()
    assert typed("db", "check", "--db", filled) == 1
    told = capsys.readouterr().out
    assert "figures that do not follow from their samples" in told
    assert "compilewatch db restore" in told
    assert typed("db", "check", "--json", "--db", filled) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["sound"] is False
    assert document["damage"][0]["count"] == 18


@pytest.mark.parametrize(
    "words",
    [
        ("backup", "/nowhere/at/all.db"),
        ("restore", "/nowhere.db"),
        ("check",),
        ("vacuum",),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("db", *words, "--db", f"sqlite:///{tmp_path / 'absent.db'}") == 2
    error = capsys.readouterr().err
    assert error.startswith("compilewatch: ")
    assert "Traceback" not in error
    assert not list(tmp_path.iterdir())


def test_a_token_is_shown_once_and_revoked(filled: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("token", "create", "grafana", "--scope", "metrics", "--scope", "api", "--days", "30")
    assert typed(*words, "--by", "ada", "--db", filled) == 0
    captured = capsys.readouterr()
    secret = captured.out.strip()
    assert secret not in captured.err
    with open_database(filled, read_only=True) as database:
        token = token_of(database, secret)
        assert token is not None
        assert token_of(database, secret[:-1]) is None
    assert secret not in Path(filled.removeprefix("sqlite:///")).read_bytes().decode("latin-1")
    assert typed("token", "list", "--db", filled) == 0
    listed = capsys.readouterr().out
    assert "grafana  opens metrics, api  until " in listed
    assert token.secret_hash not in listed
    assert typed("token", "revoke", token.token_id, "--by", "ada", "--db", filled) == 0
    assert typed("token", "list", "--json", "--db", filled) == 0
    document = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert document["tokens"][0]["revoked_by"] == "ada"
    assert "secret_hash" not in document["tokens"][0]
    with open_database(filled, read_only=True) as database:
        assert TOKENS.all(database)[0].revoked_at is not None


def test_a_token_of_no_name_and_one_that_is_not_there(
    filled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("token", "create", "two words", "--db", filled) == 2
    assert typed("token", "revoke", "nothing", "--by", "ada", "--db", filled) == 2
    error = capsys.readouterr().err
    assert "cannot name a token" in error
    assert "There is no token nothing" in error
