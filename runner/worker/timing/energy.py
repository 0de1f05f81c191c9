"""Steps as a loop runs them, while the runner reads the device's energy counter at both ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

WINDOW_NS = 1_000_000_000
"""The counter moves some ten times a second, so that a window of a second is right to a few percent."""
_FEWEST = 3


def run_window(
    step: Callable[[], Any],
    synchronize: Callable[[], None],
    announce: Callable[[int], None],
    latency_ns: int,
) -> None:
    """Run steps of `latency_ns` for about `WINDOW_NS`, with nothing between them.

    `announce` is called with 0 before the first and with their number after the last, while the device has
    nothing to do.
    """
    steps = max(_FEWEST, math.ceil(WINDOW_NS / max(1, latency_ns)))
    step()
    synchronize()
    announce(0)
    for _ in range(steps):
        step()
    synchronize()
    announce(steps)
