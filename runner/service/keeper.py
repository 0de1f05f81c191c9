"""The thread beside the measuring: keeps the timetable, beats for the request, tells of its host. A database
that is away is named once when it goes, once when it is back, and waited for.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from threading import Event, Lock, Thread

from compilewatch import __version__
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import DatabaseError
from compilewatch.db.records.hosts import HostDevice, HostState
from compilewatch.db.service.hosts import note_host_stopped, save_host
from compilewatch.db.service.requests import (
    beat_request,
    cancelled_requests,
    release_request,
    running_requests,
)
from compilewatch.runner.device.host import device_readings, disk_room
from compilewatch.runner.service.timetable import Host, Timetable

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


# Finds requests whose service died, without trusting anybody's wall clock.


LEASE_S = 60.0
"""A request whose beat stands still this long, by the watcher's own monotonic clock, is abandoned."""


class Abandoned:
    """Watches the beats of all running requests. Call `check` every few seconds."""

    def __init__(self, database: Database, *, owner: str, monotonic: Callable[[], float]) -> None:
        self._database = database
        self._owner = owner
        self._monotonic = monotonic
        self._beats: dict[str, tuple[int, float]] = {}

    def check(self, at: datetime) -> list[str]:
        """Queue again what was abandoned: the ids. Raises DatabaseError."""
        now = self._monotonic()
        running = {request.request_id: request for request in running_requests(self._database)}
        self._beats = {key: beat_since for key, beat_since in self._beats.items() if key in running}
        released = []
        for key, request in running.items():
            beat, since = self._beats.get(key, (None, now))
            if beat != request.beat:
                self._beats[key] = (request.beat, now)
            elif now - since >= LEASE_S:
                state = release_request(self._database, request, by=self._owner, at=at)
                if state is not None:
                    _LOG.warning("Request %s of %s is %s again.", key, request.owner, state.value)
                    released.append(key)
        return released

    def forget(self) -> None:
        """Begin anew, after a time in which nobody could beat."""
        self._beats.clear()


BEAT_S = 5.0
POLL_S = 1.0
"""How often it is looked whether somebody cancelled what is measured: one row is read."""
RECONCILE_S = 10.0


class Keeper:
    """Runs until `stop`, calling `watch` now and then. `hold` and `drop` say which requests are measured.

    The GPUs of the host are asked how they are between requests, where it `asks_devices` at all.
    """

    def __init__(
        self,
        database: Database,
        timetable: Timetable,
        *,
        owner: str,
        clock: Callable[[], datetime],
        stop: Event,
        facts: HostFacts,
        outage: Outage,
        asks_devices: bool = True,
        watch: Callable[[datetime], object] = lambda _now: None,
    ) -> None:
        self._database = database
        self._timetable = timetable
        self._owner = owner
        self._clock = clock
        self._stop = stop
        self._facts = facts
        self._patience = outage.patience()
        self._asks_devices = asks_devices
        self._watch = watch
        self._abandoned = Abandoned(database, owner=owner, monotonic=time.monotonic)
        self._lock = Lock()
        self._held: dict[str, Event] = {}
        self._thread = Thread(target=self._run, name="keeper", daemon=True)

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait for its end, at most so long."""
        self._thread.join(timeout_s)

    def hold(self, request_id: str) -> Event:
        """Beat for the request: the event is set once its measuring should end."""
        should_end = Event()
        with self._lock:
            self._held[request_id] = should_end
        return should_end

    def drop(self, request_id: str) -> None:
        """Beat no more for the request."""
        with self._lock:
            del self._held[request_id]

    def _run(self) -> None:
        reconciled = float("-inf")
        while not self._stop.is_set():
            try:
                self._beat()
                self._facts.save(idle=self._asks_devices and not self._holding())
                if time.monotonic() - reconciled >= RECONCILE_S:
                    reconciled = time.monotonic()
                    self._timetable.reconcile()
                    self._abandoned.check(self._clock())
                    self._watch(self._clock())
                self._patience.recovered()
                self._wait()
            except DatabaseError as error:
                self._abandoned.forget()
                self._patience.failed(error, self._stop)

    def _wait(self) -> None:
        """Until the next beat, or the stop; what is cancelled meanwhile ends at once."""
        until = time.monotonic() + BEAT_S
        while (remaining := until - time.monotonic()) > 0 and not self._stop.wait(min(remaining, POLL_S)):
            holding = self._holding()
            for request_id in cancelled_requests(self._database, holding):
                holding[request_id].set()

    def _holding(self) -> dict[str, Event]:
        with self._lock:
            return dict(self._held)

    def _beat(self) -> None:
        for request_id, should_end in self._holding().items():
            if should_end.is_set() or beat_request(self._database, request_id, owner=self._owner):
                continue
            _LOG.info("Request %s was cancelled or is with another service; its measuring ends.", request_id)
            should_end.set()


SAVE_INTERVAL_S = 30.0


class HostFacts:
    """Call `save` every few seconds: it writes now and then, and asks the GPUs only between measurements."""

    def __init__(
        self,
        database: Database,
        host: Host,
        data_dir: Path,
        *,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        devices: Callable[[], tuple[HostDevice, ...]] | None = None,
    ) -> None:
        self._database = database
        self._host = host
        self._data_dir = data_dir
        self._clock = clock
        self._monotonic = monotonic
        self._read_devices = devices or read_devices
        self._started_at = clock()
        self._saved_at = float("-inf")
        self._devices: tuple[HostDevice, ...] | None = None
        self._devices_read_at: datetime | None = None

    def save(self, *, idle: bool) -> None:
        """Put the facts down if they are old. Raises DatabaseError."""
        if self._monotonic() - self._saved_at < SAVE_INTERVAL_S:
            return
        if idle:
            self._devices, self._devices_read_at = self._read_devices(), self._clock()
        free, total = disk_room(self._data_dir)
        state = HostState(
            name=self._host.name,
            owner=self._host.owner,
            started_at=self._started_at,
            seen_at=self._clock(),
            program_version=__version__,
            free_bytes=free,
            total_bytes=total,
            devices=self._devices,
            devices_read_at=self._devices_read_at,
        )
        save_host(self._database, state)
        self._saved_at = self._monotonic()

    def stopped(self) -> None:
        """Say that the service ended as it should. Raises DatabaseError."""
        note_host_stopped(self._database, self._host.name, owner=self._host.owner, at=self._clock())


def read_devices() -> tuple[HostDevice, ...]:
    """Every GPU that NVML shows; none without a driver."""
    return tuple(HostDevice.model_validate(reading) for reading in device_readings())
