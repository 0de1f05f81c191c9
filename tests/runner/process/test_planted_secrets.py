"""Secrets planted in every place that takes one are in nothing that anybody reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from compilewatch.runner.plan.interpreter import worker_environment

SECRET = "pl4nted-5ecret"
CONFIG = f"""
database_url = "postgresql://ada:{SECRET}@127.0.0.1:1/compilewatch"

[[channel]]
name = "team"
webhook = "https://example.com/{SECRET}"

[[channel]]
name = "mail"
apprise = "mailto://ada:{SECRET}@example.com"

[auth]
base_url = "https://compilewatch.example"
issuer = "https://login.example"
client_id = "compilewatch"
client_secret = "{SECRET}"
[auth.roles]
everyone = "viewer"
"""
COMMANDS = [
    ("config", "show"),
    ("config", "show", "--json"),
    ("config", "check"),
    ("db", "check"),
    ("db", "upgrade"),
    ("db", "backup", "b.db"),
    ("list", "runs"),
    ("token", "list"),
    ("report", "list"),
    ("schedule", "list"),
    ("compare", "a", "b"),
    ("export", "x.jsonl"),
]
WRONG = [
    f'[auth]\nclient_secret = {{ "{SECRET}" = 1 }}\n',
    f'[auth]\nbase_url = "https://a.example"\nissuer = "https://ada:{SECRET}@login.example"\n',
    f'[auth]\nclient_secret = "{SECRET}"\n',
    f'[auth]\nbase_url = "https://a.example"\nissuer = "https://l.example"\nclient_id = "c"\n'
    f'client_secret = "{SECRET}"\nroles = "everyone"\n',
    f'[[channel]]\nname = "team"\nwebhook = "not an address {SECRET}"\n',
    f'database_url = "mysql://ada:{SECRET}@h/d"\n',
    f'database_url = ["{SECRET}"]\n',
]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(project: Path) -> str:
    files = [path for path in project.rglob("*") if path.is_file() and path.name != "compilewatch.toml"]
    return "".join(path.read_bytes().decode("latin-1") for path in files)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_says_a_secret(
    words: tuple[str, ...], project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "compilewatch.toml").write_text(CONFIG, encoding="utf-8")
    exit_code_of(app, list(words))
    captured = capfd.readouterr()
    assert captured.out + captured.err, "without output at all"
    assert SECRET not in captured.out + captured.err + written(project)


@pytest.mark.parametrize("content", WRONG)
def test_no_complaint_repeats_a_secret(
    content: str, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "compilewatch.toml").write_text(content, encoding="utf-8")
    assert exit_code_of(app, ["list", "runs"]) == 2
    captured = capfd.readouterr()
    assert SECRET not in captured.out + captured.err


def test_a_measured_process_is_given_no_secret(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Workloads are somebody's code; the password of the database is none of their business."""
    monkeypatch.setenv("COMPILEWATCH_DATABASE_URL", f"postgresql://ada:{SECRET}@h/d")
    monkeypatch.setenv("COMPILEWATCH_AUTH__CLIENT_SECRET", SECRET)
    monkeypatch.setenv("PGPASSWORD", SECRET)
    environment = worker_environment(tmp_path / "caches", threads=1, extra={})
    assert SECRET not in " ".join(environment.values())


def test_the_dashboards_secrets_are_in_no_list_of_processes(project: Path) -> None:
    """They go through the environment, which only the same user can read."""
    (project / "compilewatch.toml").write_text(CONFIG, encoding="utf-8")
    program = (
        "import os, sys\n"
        "os.execve = lambda path, words, environment: print(words, SECRET in str(environment))\n"
        f"SECRET = {SECRET!r}\n"
        "from compilewatch.runner.cli import main\n"
        "main(['dashboard'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    words, _, in_environment = done.stdout.strip().rpartition(" ")
    assert "dashboard" in words, done.stderr
    assert SECRET not in words
    assert in_environment == "True"
