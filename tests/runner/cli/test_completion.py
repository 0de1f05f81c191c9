"""What the shell proposes: the names of the configuration and of what is stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.store.trials import save_trial
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import make_trial

_CONFIGURATION = """\
[[workload]]
name = "ranker"
target = "encoder"

[[suite]]
name = "nightly"
workloads = ["ranker"]
"""


@pytest.fixture
def proposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], list[str]]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "compilewatch.toml").write_text(_CONFIGURATION, encoding="utf-8")

    def names(words: str) -> list[str]:
        typed = f"compilewatch {words}"
        monkeypatch.setenv("_COMPILEWATCH_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - (not words.endswith(" "))))
        with pytest.raises(SystemExit):
            exit_code_of(app, [])
        said = capsys.readouterr()
        assert said.err == ""
        return said.out.split()

    return names


def test_names_of_the_configuration_are_proposed(proposed: Callable[[str], list[str]]) -> None:
    assert proposed("report sh") == ["show"]
    assert proposed("run --workload rank") == ["ranker"]
    assert proposed("run --suite night") == ["nightly"]
    assert "reduce-overhead" in proposed("run -w cnn --strategy red")


def test_without_a_database_or_with_a_broken_configuration_nothing_is_said(
    proposed: Callable[[str], list[str]], tmp_path: Path
) -> None:
    assert proposed("compare prev") == ["previous"]
    assert proposed("history --machine x") == []
    (tmp_path / "compilewatch.toml").write_text("[[[", encoding="utf-8")
    assert proposed("run --workload rank") == []
    assert {each.name for each in tmp_path.iterdir()} == {"compilewatch.toml"}


def test_names_of_what_is_stored_are_proposed_and_taken(
    proposed: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_database("sqlite:///compilewatch.db", migrate=True) as database:
        save_trial(database, make_trial())
    machine = make_trial().machine.name
    assert proposed(f"compare latest previous --machine {machine[:3]}") == [machine]
    assert proposed("gate --against prev") == ["previous"]
    monkeypatch.delenv("_COMPILEWATCH_COMPLETE")
    for words in (["history"], ["export"], ["compare", "strategy=eager", "strategy=default"]):
        words = [*words, "--machine"]
        exit_code_of(app, [*words, machine])
        assert "No machine" not in capsys.readouterr().err
        assert exit_code_of(app, [*words, "nobody"]) == 2
        assert f"({machine})" in capsys.readouterr().err
