"""`compilewatch dashboard` before anything was measured."""

from __future__ import annotations

from pathlib import Path

from tests.runner.terminal import compilewatch


def test_before_the_first_run_it_has_an_empty_database_to_show(tmp_path: Path) -> None:
    refused = compilewatch("dashboard", "--host", "0.0.0.0", cwd=tmp_path)
    assert "can be reached from other machines" in refused.stderr, "it came as far as serving"
    assert (tmp_path / "compilewatch.db").exists()


def test_a_database_that_is_named_is_not_made(tmp_path: Path) -> None:
    refused = compilewatch("dashboard", "--db", f"sqlite:///{tmp_path / 'misspelt.db'}", cwd=tmp_path)
    assert refused.returncode == 2
    assert "There is no database" in refused.stderr
    assert not (tmp_path / "misspelt.db").exists()
