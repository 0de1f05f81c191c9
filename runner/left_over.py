"""What a measured process started and a guard that was killed could not end."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

_LONGEST_S = 5.0
_PAUSE_S = 0.05


def end_left_over(scratch: Path) -> None:
    """Kill what has its TMPDIR in `scratch`, whoever its parent is by now, and delete the directory.

    The guard's own descendants cannot be listed any more: they have become init's.
    """
    deadline = time.monotonic() + _LONGEST_S
    while (found := list(_processes_of(scratch))) and time.monotonic() < deadline:
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(_PAUSE_S)
    shutil.rmtree(scratch, ignore_errors=True)


def _processes_of(scratch: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        # Other users' processes do not tell, and dead ones have nothing to tell.
        with contextlib.suppress(psutil.Error):
            place = process.environ().get("TMPDIR")
            if place and Path(place).is_relative_to(scratch):
                yield process
