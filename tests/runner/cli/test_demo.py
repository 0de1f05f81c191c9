"""The recorded histories are served by a command, and a shell completes the commands."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from db.engine.session import open_database
from db.queries import facets
from runner.cli.app import app
from runner.cli.front import exit_code_of
from tests.dashboard.serving import free_port
from tests.house.tracked import ROOT
from tests.runner.terminal import COMMAND, environment


@pytest.mark.slow
def test_the_demo_serves_what_was_recorded(tmp_path: Path) -> None:
    port = free_port()
    command = [*COMMAND, "demo", "--port", str(port)]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL)
    try:
        assert _answers(f"http://127.0.0.1:{port}/healthz", process)
    finally:
        process.terminate()
        process.wait(30)
    database = open_database(f"sqlite:///{tmp_path}/.compilewatch/demo.db", migrate=False)
    try:
        machines = set(facets.machines(database)["device"])
    finally:
        database.close()
    assert machines == {"cpu", "cuda"}


def _answers(url: str, process: subprocess.Popen[bytes], seconds: float = 200) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.status == 200
        except OSError:
            time.sleep(0.2)
    return False


def test_a_shell_completes_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"_COMPILEWATCH_COMPLETE": "complete_bash", "COMP_WORDS": "compilewatch report sh"}
    for name, value in (asked | {"COMP_CWORD": "2"}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        exit_code_of(app, [])
    assert capsys.readouterr().out.split() == ["show"]


@pytest.mark.parametrize(
    ("program", "imported", "code"),
    [("dashboard.__main__", "dashboard.server.server", 0), ("runner.cli", "runner.cli.app", 130)],
)
def test_ctrl_c_while_it_starts_shows_no_traceback(program: str, imported: str, code: int) -> None:
    interrupting = f"""
import importlib, sys
class Finder:
    def find_spec(self, name, path, target=None):
        if name == {imported!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
sys.exit(importlib.import_module({program!r}).main())
"""
    done = subprocess.run(
        [sys.executable, "-c", interrupting], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
