"""A small git repository for tests of code as a part of what is compared."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class Repository:
    """Made at `root`, with an author and the branch main; no configuration of the host's applies."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        """What git prints."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        person = {"NAME": "A Developer", "EMAIL": "developer@example.com"}
        environment = clean | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        for role in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{role}_{name}": value for name, value in person.items()}
        command = ["git", "-C", str(self.root), *arguments]
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self, message: str = "change", **files: str) -> str:
        """Write `files` (`ranking_py` is ranking.py), commit all, and return the commit."""
        for name, content in files.items():
            (self.root / name.replace("_py", ".py")).write_text(content, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")
