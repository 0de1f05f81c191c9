"""What the service does while nothing is measured: stores what waits, looks for upgrades, forgets samples."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from db.session import Database
from db.store import save_trial
from db.store_retention import compact_samples
from db.units import plural
from runner.config import Settings
from runner.interpreter import check_interpreter
from runner.schedule.fingerprint import request_where_changed
from runner.schedule.timetable import Host
from runner.spool import Spool

_LOG = logging.getLogger("compilewatch.schedule")

PERIOD_S = 3600.0


class Upkeep:
    """Call `when_idle` between requests: never beside a measurement, which it would disturb."""

    def __init__(self, settings: Settings, database: Database, host: Host, spool: Spool) -> None:
        self._settings = settings
        self._database = database
        self._host = host
        self._spool = spool
        self._next = float("-inf")

    def when_idle(self, clock: Callable[[], datetime], should_stop: Callable[[], bool]) -> None:
        """Store waiting trials, and do the rest at start and hourly. Raises DatabaseError."""
        self.store_waiting()
        if time.monotonic() < self._next:
            return
        self._look_for_upgrades(clock())
        self._forget_samples(clock(), should_stop)
        self._next = time.monotonic() + PERIOD_S

    def store_waiting(self) -> None:
        """Store the trials that could not be stored when they were measured. Raises DatabaseError."""
        if self._spool.waiting():
            replay = self._spool.replay(lambda trial: save_trial(self._database, trial))
            _LOG.info("Stored %s that waited on disk.", plural(replay.stored, "trial"))

    def _look_for_upgrades(self, now: datetime) -> None:
        if not self._settings.service.watch_builds:
            return
        request = request_where_changed(
            self._database, self._settings, host=self._host.name, owner=self._host.owner, at=now
        )
        if request is not None:
            # What is remembered of the interpreters is from before the upgrade.
            check_interpreter.cache_clear()

    def _forget_samples(self, now: datetime, should_stop: Callable[[], bool]) -> None:
        days = self._settings.service.keep_samples_days
        if days is None:
            return
        trials = compact_samples(self._database, now - timedelta(days=days), should_stop=should_stop)
        if trials:
            _LOG.info("Forgot the samples of %s older than %s.", plural(trials, "trial"), plural(days, "day"))
