"""The console script in a real process, in a directory of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "runner"]
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
