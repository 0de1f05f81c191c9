"""What the shell proposes: the names of the configuration and of what is stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.cli.app import app
from runner.cli.front import exit_code_of

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
