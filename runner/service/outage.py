"""A database that is away: said once when it goes, once when it is back, and waited for."""

from __future__ import annotations

import logging
import time
from threading import Event, Lock

from compilewatch.db.errors import DatabaseError

_LOG = logging.getLogger("compilewatch.schedule")
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 15.0


class Outage:
    """What the threads of one process know of the database: away from the first that fails to the last that
    reaches it again, so that one line says each.
    """

    def __init__(self) -> None:
        self.errors = 0
        """How often the database failed this process, all threads together."""
        self._lock = Lock()
        self._failing: set[Patience] = set()
        self._since = 0.0

    def patience(self) -> Patience:
        """For one thread, or one thing that a thread does again and again."""
        return Patience(self)

    def failed(self, who: Patience, error: DatabaseError) -> None:
        """Count a failure of `who`, and say it where the database was there until now."""
        with self._lock:
            self.errors += 1
            if not self._failing:
                self._since = time.monotonic()
                _LOG.warning("%s Waiting for it.", error.message)
            self._failing.add(who)

    def recovered(self, who: Patience) -> None:
        """Note that `who` reached the database, and say it where nobody fails any more."""
        with self._lock:
            if who not in self._failing:
                return
            self._failing.discard(who)
            if not self._failing:
                _LOG.warning("The database is back after %.0f s.", time.monotonic() - self._since)


class Patience:
    """How long one thread waits before it tries again."""

    def __init__(self, outage: Outage) -> None:
        self._outage = outage
        self._wait_s = _FIRST_WAIT_S

    def failed(self, error: DatabaseError, stop: Event) -> None:
        """Note a failure, and wait longer with each, at most 15 s, or until `stop`."""
        self._outage.failed(self, error)
        stop.wait(self._wait_s)
        self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S)

    def recovered(self) -> None:
        """Note that the database answered."""
        self._outage.recovered(self)
        self._wait_s = _FIRST_WAIT_S
