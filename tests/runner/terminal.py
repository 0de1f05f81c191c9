"""The console script as it is typed in a directory: in a process of its own, or in this one."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of

COMMAND = [sys.executable, "-m", "compilewatch.runner"]
ROOT = Path(__file__).parents[2]


def environment(**extra: str) -> dict[str, str]:
    """This process's environment without settings of compilewatch, able to import the checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")}
    # Two processes more per run, and three series: for the tests that are about them.
    unmeasured = {"COMPILEWATCH_RUN__CANARIES": "false"}
    return {**kept, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **unmeasured, **extra}


def compilewatch(
    *arguments: str, cwd: Path, timeout_s: float = 240, **extra: str
) -> subprocess.CompletedProcess[str]:
    """Type `compilewatch ARGUMENTS` in `cwd` and wait for it."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environment(**extra),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def in_this_process(*arguments: str, cwd: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    """The same without a second or more of imports: for commands that some other test types for real.

    What a process that the command starts writes itself is not in it.
    """
    # As `main` has its streams.
    said, complained = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", newline="\n")
        for _ in range(2)
    )
    wanted = environment(**extra)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        for name in os.environ.keys() - wanted.keys():
            patch.delenv(name)
        for name, value in wanted.items():
            patch.setenv(name, value)
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
            code = exit_code_of(app, [*arguments])
    return subprocess.CompletedProcess(arguments, code, _text(said), _text(complained))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()
