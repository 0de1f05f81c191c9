"""The data version that pages are drawn of, and what was prepared for it: kept until the next is taken up.

New data is taken up at once, unless the last was taken up a moment ago.
"""

from __future__ import annotations

import inspect
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import streamlit as st

from compilewatch.dashboard.read.database import database_url, read_version

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

_HELD: ContextVar[tuple[str, int] | None] = ContextVar("held", default=None)


@contextmanager
def one_version() -> Iterator[int]:
    """All that is read inside, of one data version: the newest, as far as `REFRESH_THROTTLE` keeps up. Inside
    of another `one_version` it is that one's.

    Raises DatabaseError when the database cannot be read.
    """
    held = _drawn()
    token = _HELD.set(held)
    try:
        yield held[1]
    finally:
        _HELD.reset(token)


def drawn_version() -> int:
    """The data version that is drawn of now. Raises DatabaseError when the database cannot be read."""
    return _drawn()[1]


def newest_version() -> int:
    """The data version that a page would be drawn of that begins now. Raises DatabaseError."""
    return REFRESH_THROTTLE.take(database_url(), read_version())


def _drawn() -> tuple[str, int]:
    return _HELD.get() or (database_url(), newest_version())


# By what is asked for: these say all that is in them, and Streamlit would walk through every field instead.
_BY_WORDS: dict[str | type, Callable[[Any], Any]] = {
    "compilewatch.dashboard.links.links.Link": repr,
    "compilewatch.db.queries.selection.Filters": repr,
}


def cached(prepare: Callable[P, T]) -> Callable[P, T]:
    """Cache what `prepare` makes of its arguments and of the version that is drawn; shared between sessions.

    Kept until another version of the data is drawn.
    """
    signature = inspect.signature(prepare)

    # The version is there to be a part of the key.
    def of_version(drawn: tuple[str, int], *args: Any, **kwargs: Any) -> T:  # noqa: ARG001
        return prepare(*args, **kwargs)

    # By these Streamlit tells functions apart.
    of_version.__module__, of_version.__qualname__ = prepare.__module__, prepare.__qualname__
    stored = st.cache_resource(max_entries=128, show_spinner=False, hash_funcs=_BY_WORDS)(of_version)
    REFRESH_THROTTLE.at_another(stored.clear)

    @wraps(prepare)
    def read(*args: P.args, **kwargs: P.kwargs) -> T:
        with one_version():
            # However it is called, as one and the same.
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            result: T = stored(_drawn(), *bound.args, **bound.kwargs)
            return result

    return read
