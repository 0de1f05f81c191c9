"""A database that is away: said once when it goes, once when it is back, and waited for."""

from __future__ import annotations

import logging
import time
from threading import Event

from db.errors import DatabaseError
from runner.schedule.health import ErrorCount

_LOG = logging.getLogger("compilewatch.schedule")
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 15.0


class Outage:
    """Whether one thread can reach the database, and how long it waits before it tries again."""

    def __init__(self, errors: ErrorCount | None = None) -> None:
        self._errors = errors or ErrorCount()
        self._since: float | None = None
        self._wait_s = _FIRST_WAIT_S

    def failed(self, error: DatabaseError, stop: Event) -> None:
        """Note a failure, and wait longer with each, at most 15 s, or until `stop`."""
        self._errors.database += 1
        if self._since is None:
            self._since = time.monotonic()
            _LOG.warning("%s Waiting for it.", error.message)
        stop.wait(self._wait_s)
        self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S)

    def over(self) -> None:
        """Note that the database answered."""
        if self._since is not None:
            _LOG.warning("The database is back after %.0f s.", time.monotonic() - self._since)
        self._since, self._wait_s = None, _FIRST_WAIT_S
