"""The data version that pages are drawn of, and what was prepared for it: kept until the next is taken up.

New data is taken up at once, unless the last was taken up a moment ago.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar, cast

import streamlit as st

from dashboard.read.database import database_url, read_version

P = ParamSpec("P")
T = TypeVar("T")

EVERY_S = 5.0
"""All that pages show is prepared once for each version: of a stream of writes so seldom."""


class RefreshThrottle:
    """The data version that the pages of one process are drawn of; safe to share between threads.

    Every write makes a new version. One that comes alone is taken up by the next page that is drawn, of a
    stream of them one every `every_s`. `clock` is in seconds.
    """

    def __init__(self, *, every_s: float = EVERY_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._clock = clock
        self._lock = threading.Lock()
        self._forget: list[Callable[[], None]] = []
        self._shown = ("", 0)
        self._shown_at = -math.inf

    def take(self, url: str, newest: int) -> int:
        """The version to draw of the database at `url`, whose newest version is `newest`."""
        with self._lock:
            now = self._clock()
            rests = now < self._shown_at + self._every_s
            if self._shown == (url, newest) or (rests and self._shown[0] == url):
                return self._shown[1]
            self._shown, self._shown_at = (url, newest), now
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


REFRESH_THROTTLE = RefreshThrottle()


def drawn_version() -> int:
    """The data version that pages are drawn of now: the newest, as far as `REFRESH_THROTTLE` keeps up.

    Raises DatabaseError when the database cannot be read.
    """
    return REFRESH_THROTTLE.take(database_url(), read_version())


# By what is asked for: these say all that is in them, and Streamlit would walk through every field instead.
_BY_WORDS: dict[str | type, Callable[[Any], Any]] = {
    "dashboard.links.links.Link": repr,
    "dashboard.read.snapshots.Snapshot": repr,
    "db.queries.filters.Filters": repr,
}


@dataclass(frozen=True)
class Snapshot:
    """The database at one data version; part of every cache key."""

    url: str
    version: int

    @classmethod
    def now(cls) -> Snapshot:
        """What a page that is drawn now is drawn of. Raises DatabaseError."""
        return cls(database_url(), drawn_version())


def cached(prepare: Callable[P, T]) -> Callable[P, T]:
    """Cache what `prepare` makes of its arguments, which hold a `Snapshot`; shared between sessions.

    Kept until another version of the data is drawn.
    """
    cached = st.cache_resource(max_entries=128, show_spinner=False, hash_funcs=_BY_WORDS)(prepare)
    REFRESH_THROTTLE.at_another(cached.clear)
    return cast(Callable[P, T], cached)
