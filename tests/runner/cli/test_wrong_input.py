"""Typed wrongly: one sentence and the next step on standard error, exit 2, nothing stored."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.runner.terminal import compilewatch, in_this_process


def _refused(result: object, *words: str) -> None:
    error = result.stderr  # type: ignore[attr-defined]
    assert result.returncode == 2, error  # type: ignore[attr-defined]
    assert result.stdout == ""  # type: ignore[attr-defined]
    # What a command says of its progress until then ends with three dots.
    lines = [line for line in error.strip().splitlines() if not line.endswith(" ...")]
    assert len(lines) == 2, error
    assert lines[0].startswith("compilewatch: ")
    assert lines[0].endswith(".")
    assert lines[1].startswith("  ")
    for word in words:
        assert word in error
    assert "Traceback" not in error


@pytest.mark.parametrize("place", ["missing/dir/compilewatch.db", "file/compilewatch.db"])
def test_a_database_path_that_cannot_be_written(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    before = sorted(path.name for path in tmp_path.iterdir())
    result = in_this_process(
        "run", "--workload", "cnn", "--db", f"sqlite:///{tmp_path / place}", cwd=tmp_path
    )
    _refused(result, str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["run", "--device", "tpu"], "'tpu'"),
        (["run", "--device", "cuda:7"], "cuda:7"),
        (["run", "--trials", "0"], "--trials"),
        (["run", "--no-such-option"], "--no-such-option"),
        (["rum"], "rum"),
        (["run", "--workload", "encodr"], "Did you mean encoder"),
        (["run", "--workload", "cnn", "--strategy", "max-autotun"], "max-autotune"),
        (["run", "--workload", "cnn", "--python", "no/python3"], "There is no interpreter"),
        (["list", "workload"], "workload"),
        (["list", "runs"], "There is no database"),
        (["show", "01ABC"], "There is no database"),
        (["export"], "There is no database"),
        (["compare", "torch=2.12.0", "latest"], "There is no database"),
        (["import", "missing.jsonl"], "missing.jsonl"),
        (["export", "--since", "yesterday"], "yesterday"),
        (["list", "runs", "--db", "mysql://host/name"], "mysql"),
    ],
)
def test_every_command_typed_wrongly(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    word: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code_of(app, arguments) == 2
    assert word in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_function_that_needs_what_is_not_given_is_refused_before_a_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "needy.py").write_text("def build(features):\n    return lambda x: x, (features,)\n")
    monkeypatch.chdir(tmp_path)
    assert exit_code_of(app, ["run", "-w", "needy:build"]) == 2
    assert "needs features" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["needy.py"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write anywhere; run the tests as another user")
def test_a_directory_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        result = compilewatch("db", "upgrade", cwd=tmp_path)
    finally:
        tmp_path.chmod(0o700)
    _refused(result, "compilewatch.db")
