"""Which database a command opens: reading makes none, and what changes one says which."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runner.terminal import in_this_process

_ID = "01KA8Z7Q3V5T2M9N4R6S8W0XYZ"


@pytest.mark.parametrize(
    "command",
    [
        ["schedule", "list"],
        ["reproduce", _ID],
        ["reproduce", _ID, "--script", "issue.py"],
        ["list", "runs"],
        ["show", _ID],
        ["compare", "previous", "latest"],
        ["gate"],
        ["history"],
        ["break-even"],
        ["geomean"],
        ["export"],
        ["request", "list"],
        ["request", "cancel", _ID],
        ["report", "list"],
        ["token", "list"],
        ["token", "revoke", "1f2e3d4c"],
        ["triage", "3f9c21aa", "--state", "fixed"],
        ["db", "check"],
        ["db", "vacuum"],
        ["config", "show"],
    ],
    ids=" ".join,
)
def test_looking_makes_no_database(tmp_path: Path, command: list[str]) -> None:
    in_this_process(*command, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        ["request", "create", "-w", "cnn"],
        ["token", "create", "grafana"],
        ["db", "upgrade"],
        ["schedule", "pause", "nightly"],
    ],
    ids=" ".join,
)
def test_a_command_that_changes_a_database_names_it(tmp_path: Path, command: list[str]) -> None:
    configuration = '[[schedule]]\nname = "nightly"\ncron = "@daily"\n'
    (tmp_path / "compilewatch.toml").write_text(configuration, encoding="utf-8")
    result = in_this_process(*command, "--db", "sqlite:///mine.db", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "sqlite:///mine.db" in result.stdout + result.stderr
