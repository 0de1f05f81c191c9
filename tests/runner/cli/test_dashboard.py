"""`compilewatch dashboard` before anything was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runner.terminal import compilewatch


def test_before_the_first_run_it_has_an_empty_database_to_show(tmp_path: Path) -> None:
    refused = compilewatch("dashboard", "--host", "0.0.0.0", cwd=tmp_path)
    assert "can be reached from other machines" in refused.stderr, "it came as far as serving"
    assert (tmp_path / "compilewatch.db").exists()


@pytest.mark.parametrize("named_by", ["--db", "environment", "configuration"])
def test_a_database_that_is_named_is_not_made(named_by: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'misspelt.db'}"
    options = ["--db", url] if named_by == "--db" else []
    named = {"COMPILEWATCH_DATABASE_URL": url} if named_by == "environment" else {}
    if named_by == "configuration":
        (tmp_path / "compilewatch.toml").write_text(f'database_url = "{url}"\n')
    refused = compilewatch("dashboard", *options, cwd=tmp_path, timeout_s=60, **named)
    assert refused.returncode == 2
    assert "There is no database" in refused.stderr
    assert not (tmp_path / "misspelt.db").exists()
