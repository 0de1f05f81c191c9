"""`compilewatch triage` and `list regressions` in process: who said what, and what mistakes get."""

from __future__ import annotations

import getpass
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.service.regressions import regressions_frame
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.regression_cases import stepping_history


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def once_gated(_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = Path(shutil.copy(_sqlite_template, tmp_path_factory.mktemp("gated") / "gated.db"))
    with open_database(f"sqlite:///{path}") as database:
        save_trials(database, stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0")))
    assert exit_code_of(app, ["gate", "--db", f"sqlite:///{path}"]) == 1
    return path


@pytest.fixture
def gated(once_gated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """A copy to write into."""
    capsys.readouterr()
    return f"sqlite:///{shutil.copy(once_gated, tmp_path / 'gated.db')}"


def say(url: str, *arguments: str) -> int:
    return exit_code_of(app, ["triage", *arguments, "--db", url])


def listed(url: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert exit_code_of(app, ["list", "regressions", "--json", "--db", url]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["rows"]
    return rows


def test_regressions_are_listed_with_their_numbers_and_state(
    gated: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = listed(gated, capsys)
    latency = next(row for row in rows if (row["workload"], row["metric"]) == ("mlp", "latency"))
    assert latency["change"] == pytest.approx(0.4, abs=0.01)
    assert latency["change_low"] < latency["change"] < latency["change_high"]
    assert (latency["base"], latency["head"]) == ("torch 2.12.0", "torch 2.13.0")
    assert (latency["state"], latency["author"], latency["cause"]) == ("new", None, "compiler")
    assert exit_code_of(app, ["list", "regressions", "--db", gated]) == 0
    out = capsys.readouterr().out
    line = next(line for line in out.splitlines() if latency["regression_id"] in line)
    for word in ("mlp", "latency", "+39.8 %", "torch 2.13.0", "new"):
        assert word in line


def test_what_was_said_by_whom_is_kept(gated: str, capsys: pytest.CaptureFixture[str]) -> None:
    identifier = listed(gated, capsys)[0]["regression_id"]
    note = ("--note", "Traded for memory.", "--url", "https://example.com/pull/7", "--by", "ada")
    assert say(gated, identifier[:8], "--state", "acknowledged") == 0
    assert f"acknowledged, by {getpass.getuser()} on 20" in capsys.readouterr().out
    assert say(gated, identifier, "--state", "expected", *note, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "compilewatch.regression/1"
    assert (document["regression_id"], document["state"]) == (identifier, "expected")
    assert [event["author"] for event in document["triage"]] == [getpass.getuser(), "ada"]
    last = document["triage"][-1]
    assert (last["note"], last["url"]) == ("Traded for memory.", "https://example.com/pull/7")
    row = next(row for row in listed(gated, capsys) if row["regression_id"] == identifier)
    assert (row["state"], row["author"]) == ("expected", "ada")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing", "--state", "fixed"), ("There is no regression 'nothing'.", "list regressions")),
        (("", "--state", "fixed"), ("There is no regression ''.", "list regressions")),
        (("{id}", "--state", "confirmed"), ("confirmed", "--help")),
        (("{id}",), ("--state", "--help")),
        (("{id}", "--state", "fixed", "--url", "javascript:alert(1)"), ("--url must start with http",)),
        (("{id}", "--state", "fixed", "--url", "https://a b"), ("--url must start with http",)),
        (("{id}", "--state", "fixed", "--by", ""), ("--by must be a name",)),
        (("{id}", "--state", "fixed", "--note", "x" * 10_001), ("--note must be a text",)),
    ],
)
def test_a_mistake_is_answered_and_changes_nothing(
    gated: str, arguments: tuple[str, ...], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    identifier = listed(gated, capsys)[0]["regression_id"]
    with open_database(gated) as database:
        before = regressions_frame(database, revised=True)
    assert say(gated, *(each.replace("{id}", identifier) for each in arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    for word in words:
        assert word in captured.err
    with open_database(gated) as database:
        assert regressions_frame(database, revised=True).equals(before)


def test_an_id_cut_too_short_is_not_guessed(gated: str, capsys: pytest.CaptureFixture[str]) -> None:
    ids = sorted(row["regression_id"] for row in listed(gated, capsys))
    firsts = [each[0] for each in ids]
    shared = next((first for first in firsts if firsts.count(first) > 1), None)
    if shared is None:
        assert say(gated, ids[0][0], "--state", "fixed") == 0
    else:
        assert say(gated, shared, "--state", "fixed") == 2
        assert f"Several regressions start with {shared!r}." in capsys.readouterr().err
