"""Pages take turns at the processor: few are drawn at the same time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

AT_ONCE = 2
"""How many pages are drawn at the same time."""
LONGEST_S = 10.0
"""How long a page is waited for: several times what the dearest one computes over a million trials."""


class RenderLimit:
    """At most `at_once` pages are drawn at the same time; the others wait. Safe to share between threads.

    Threads that compute take turns at one interpreter, and fifty of them that all take turns with the event
    loop leave it a fiftieth of the time, in which it must answer everybody else.

    A page that has been drawn for `longest_s` most likely hangs in a read of its database and computes
    nothing: it is drawn on, but nobody waits for its turn any longer. So pages that hang, however many and
    for however long, hold up only those that need just what is being read. `clock` is in seconds.
    """

    def __init__(
        self,
        at_once: int = AT_ONCE,
        *,
        longest_s: float = LONGEST_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._at_once = at_once
        self._longest_s = longest_s
        self._clock = clock
        self._changed = threading.Condition()
        self._waited_for_until: dict[object, float] = {}

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait for a turn, and have it until the end of the block."""
        turn = object()
        with self._changed:
            while (wait_s := self._wait_s()) > 0:
                self._changed.wait(wait_s)
            self._waited_for_until[turn] = self._clock() + self._longest_s
        try:
            yield
        finally:
            with self._changed:
                del self._waited_for_until[turn]
                self._changed.notify_all()

    def _wait_s(self) -> float:
        """The seconds until there is a turn, unless a page ends before; 0 where there is one now."""
        now = self._clock()
        ends = [until for until in self._waited_for_until.values() if until > now]
        return 0.0 if len(ends) < self._at_once else min(ends) - now


RENDER_LIMIT = RenderLimit()
"""Those of the pages of this process."""
