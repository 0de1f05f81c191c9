"""The hourly work of a worker's host: when it is due, and the process that does it."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence

_LOG = logging.getLogger("compilewatch.fleet")
PERIOD_S = 3600.0
_LONGEST_S = 300.0

PROGRAM = (sys.executable, "-m", "runner.fleet.upkeep")


class Chores:
    """`if_due` runs `runner.fleet.upkeep`: first `first_s` after the start, then hourly.

    Not at once, so that a worker that has just come begins a trial first, and one that is started again and
    again measures all the same.
    """

    def __init__(
        self,
        config: str,
        *,
        first_s: float,
        program: Sequence[str] = PROGRAM,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command = [*program, str(os.getpid()), config]
        self._monotonic = monotonic
        self._retry_s = first_s
        self._due = monotonic() + first_s
        self._lock = asyncio.Lock()

    def due_in_s(self) -> float:
        """Seconds until it is due; 0 where it is."""
        return max(0.0, self._due - self._monotonic())

    async def if_due(self) -> None:
        """Have it done and wait for it, five minutes at most; cancelled, it ends and is due again soon."""
        async with self._lock:
            if self.due_in_s() > 0:
                return
            self._due = self._monotonic() + PERIOD_S
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, process_group=0
            )
            try:
                await asyncio.wait_for(process.wait(), _LONGEST_S)
            except TimeoutError:
                _LOG.warning("The hourly work took longer than %.0f s and was ended.", _LONGEST_S)
            except asyncio.CancelledError:
                self._due = self._monotonic() + self._retry_s
                raise
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
