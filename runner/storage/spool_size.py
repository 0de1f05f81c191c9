"""What waits in a spool, without opening it: standard library only, for a worker that waits."""

from __future__ import annotations

import contextlib
from pathlib import Path


def waiting_files(directory: Path) -> list[Path]:
    """Trials that are not stored yet, oldest first."""
    return sorted(directory.glob("*.json"))


def spool_size(directory: Path) -> tuple[int, int]:
    """How many trials wait, and their bytes. What another process stores meanwhile is passed over."""
    trials = total = 0
    for path in waiting_files(directory):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
            trials += 1
    return trials, total
