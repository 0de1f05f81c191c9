"""Who is signed in, in the memory of this process: what a browser holds is a random name of a session.

A session ends when its time is over, when its owner signs out, and when the process ends.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from compilewatch.dashboard.login.access import Person

_MOST_SESSIONS = 10_000


class Sessions:
    """Every session by the hash of its name; safe to share between threads. Times are of `clock`, in s."""

    def __init__(self, *, lasts_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.lasts_s = lasts_s
        self._clock = clock
        self._lock = threading.Lock()
        # Whose each is, and when it ends.
        self._sessions: OrderedDict[str, tuple[Person, float]] = OrderedDict()

    def begin(self, person: Person) -> str:
        """A new session of `person`: the name its browser gets, 256 random bits."""
        name = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[_key(name)] = person, self._clock() + self.lasts_s
            while len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)
        return name

    def person(self, name: str | None) -> Person | None:
        """Whose session it is, None where there is none of that name any more."""
        if not name:
            return None
        key = _key(name)
        with self._lock:
            person, ends_at = self._sessions.get(key, (None, 0.0))
            if person is not None and ends_at <= self._clock():
                del self._sessions[key]
                return None
        return person

    def end(self, name: str | None) -> None:
        """Forget the session of that name, if there is one."""
        with self._lock:
            self._sessions.pop(_key(name or ""), None)


def _key(name: str) -> str:
    """Sessions are found by a hash, so that how long the search takes says nothing about any name."""
    return hashlib.sha256(name.encode()).hexdigest()
