"""Ctrl-C before a program has begun is no failure of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.house.tracked import ROOT


@pytest.mark.parametrize(
    ("program", "imported", "code"),
    [
        ("compilewatch.dashboard.__main__", "compilewatch.dashboard.server.server", 0),
        ("compilewatch.runner.cli", "compilewatch.runner.cli.app", 130),
    ],
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
