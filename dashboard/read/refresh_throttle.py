"""How soon pages take up new data: at once, unless it keeps coming faster than it can be prepared."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

SHARE = 4
"""How many times as long as the last version took to prepare the next one waits: a fifth of a processor."""
LONGEST_S = 6.0

P = ParamSpec("P")
T = TypeVar("T")


class RefreshThrottle:
    """The data version that the pages of one process are drawn of; safe to share between threads.

    Every write makes a new version, and everything that pages show is prepared once for each version that is
    taken up. So after one is taken up, the next is only `share` times the processor seconds that were spent
    on it later, at most `longest_s`. A write that comes alone is taken up by the next page that is drawn.
    `clock` is in seconds.
    """

    def __init__(
        self,
        *,
        share: float = SHARE,
        longest_s: float = LONGEST_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._share = share
        self._longest_s = longest_s
        self._clock = clock
        self._lock = threading.Lock()
        self._forget: list[Callable[[], None]] = []
        self._shown = ("", 0)
        self._shown_at = -math.inf
        self._spent_s = 0.0
        self._thread = threading.local()

    def take(self, url: str, newest: int) -> int:
        """The version to draw of the database at `url`, whose newest version is `newest`."""
        with self._lock:
            now = self._clock()
            rests = now < self._shown_at + min(self._longest_s, self._share * self._spent_s)
            if self._shown == (url, newest) or (rests and self._shown[0] == url):
                return self._shown[1]
            self._shown, self._shown_at, self._spent_s = (url, newest), now, 0.0
        # Nobody asks for an earlier version again.
        for forget in self._forget:
            forget()
        return newest

    def catch_up(self) -> None:
        """Take up the newest version with the next page: whoever wrote it waits to see it."""
        with self._lock:
            self._shown_at = -math.inf

    def at_another(self, forget: Callable[[], None]) -> None:
        """Call `forget` whenever another version has been taken up."""
        self._forget.append(forget)

    def timed(self, prepare: Callable[P, T]) -> Callable[P, T]:
        """`prepare`, with the processor time of its thread counted; what it calls is counted with it."""

        @wraps(prepare)
        def counted(*args: P.args, **kwargs: P.kwargs) -> T:
            if getattr(self._thread, "counts", False):
                return prepare(*args, **kwargs)
            self._thread.counts, began_s = True, time.thread_time()
            try:
                return prepare(*args, **kwargs)
            finally:
                self._thread.counts = False
                with self._lock:
                    self._spent_s += time.thread_time() - began_s

        return counted
