"""For the processes of a worker: they end with it."""

from __future__ import annotations

import os
import signal
import sys

from runner.process.guard import PR_SET_PDEATHSIG, prctl


def die_with(parent: int) -> None:
    """End this process when the worker `parent` is killed."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
