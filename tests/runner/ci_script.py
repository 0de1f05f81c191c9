"""The script of docs/ci.md, as a job runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / ".github" / "actions" / "compilewatch-gate"


def gate(folder: Path, url: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The script in `folder`, with this checkout's commands first on the path."""
    commands = Path(sys.executable).parent
    return subprocess.run(
        [ACTION / "gate.sh"],
        cwd=folder,
        env={
            **{name: text for name, text in os.environ.items() if not name.startswith("GITHUB_")},
            "PATH": f"{commands}:{os.environ['PATH']}",
            "COMPILEWATCH_DATABASE_URL": url,
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=240,
    )
