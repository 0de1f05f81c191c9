"""Finds requests whose service died, without trusting anybody's wall clock."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from db.queries.schedule import running_requests
from db.session import Database
from db.store_request import release_request

_LOG = logging.getLogger("compilewatch.schedule")

LEASE_S = 60.0
"""A request whose beat stands still this long, by the watcher's own monotonic clock, is abandoned."""


class Abandoned:
    """Watches the beats of all running requests. Call `look` every few seconds."""

    def __init__(self, database: Database, *, owner: str, monotonic: Callable[[], float]) -> None:
        self._database = database
        self._owner = owner
        self._monotonic = monotonic
        self._seen: dict[str, tuple[int, float]] = {}

    def look(self, at: datetime) -> list[str]:
        """Queue again what was abandoned: the ids. Raises DatabaseError."""
        now = self._monotonic()
        running = {request.request_id: request for request in running_requests(self._database)}
        self._seen = {key: seen for key, seen in self._seen.items() if key in running}
        released = []
        for key, request in running.items():
            beat, since = self._seen.get(key, (None, now))
            if beat != request.beat:
                self._seen[key] = (request.beat, now)
            elif now - since >= LEASE_S:
                state = release_request(self._database, request, by=self._owner, at=at)
                if state is not None:
                    _LOG.warning("Request %s of %s is %s again.", key, request.owner, state.value)
                    released.append(key)
        return released

    def forget(self) -> None:
        """Begin anew, after a time in which nobody could beat."""
        self._seen.clear()
