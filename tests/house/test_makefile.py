"""The doors that people and CI use: make targets, .ci/run, the hooks before a commit."""

import os
import re
import subprocess

from tests.house.tracked import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)[1].split()


def make(*arguments: str) -> str:
    """Return what make prints, run as from a bare login shell."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    command = ["make", "--directory", str(ROOT), "--no-print-directory", *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def test_help_has_one_line_per_target() -> None:
    lines = make("help").splitlines()
    assert [line.split()[0] for line in lines] == TARGETS
    assert all(len(line.split(maxsplit=1)[1]) > len("no words") for line in lines)


def test_promised_targets_exist() -> None:
    assert {"install", "up", "test", "lint", "fix", "serve", "bench", "docs"} <= set(TARGETS)


def test_make_test_runs_every_check() -> None:
    commands = make("--dry-run", "test")
    for check in ("ruff check", "ruff format --check", "mypy", "pytest"):
        assert check in commands


def test_ci_runs_what_people_run() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text(encoding="utf-8").splitlines()[-1] == "make test"


def test_hooks_run_the_pinned_tools() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert "repo: local" in hooks
    assert set(re.findall(r"entry: (\S+)", hooks)) == {".venv/bin/ruff", ".venv/bin/mypy"}
