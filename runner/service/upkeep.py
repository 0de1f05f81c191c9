"""What the service does while nothing is measured: stores what waits, sees upgrades, forgets what is old."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError, DatabaseError
from compilewatch.db.store.retention import compact_samples
from compilewatch.db.units import plural
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.plan.interpreter import check_interpreter
from compilewatch.runner.process.trace import forget_traces
from compilewatch.runner.service.fingerprint import request_where_changed
from compilewatch.runner.service.timetable import Host
from compilewatch.runner.storage.persistence import store_waiting
from compilewatch.runner.storage.spool import Spool

_LOG = logging.getLogger("compilewatch.schedule")

PERIOD_S = 3600.0


class Upkeep:
    """Call `when_idle` between requests: never beside a measurement, which it would disturb."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        host: Host,
        spool: Spool,
        try_releases: Callable[[Callable[[], bool]], object] = lambda _should_stop: None,
    ) -> None:
        self._settings = settings
        self._database = database
        self._host = host
        self._spool = spool
        self._try_releases = try_releases
        self._next = float("-inf")

    def when_idle(self, clock: Callable[[], datetime], should_stop: Callable[[], bool]) -> None:
        """Store waiting trials, and do the rest at start and hourly. Raises DatabaseError."""
        self.store_waiting()
        if time.monotonic() < self._next:
            return
        self._look_for_upgrades(clock())
        self._forget_samples(clock(), should_stop)
        self._expire_reports(clock())
        forget_traces(self._settings.data_dir, self._settings.service.keep_traces_days, clock())
        self._try_new_releases(should_stop)
        self._next = time.monotonic() + PERIOD_S

    def store_waiting(self) -> None:
        """Store what could not be stored when it was measured. Raises DatabaseError."""
        replay = store_waiting(self._database, self._spool)
        if replay.stored:
            _LOG.info("Stored %s that waited on disk.", plural(replay.stored, "trial"))

    def _look_for_upgrades(self, now: datetime) -> None:
        # In a fleet the builds are on the workers' hosts, which look themselves.
        if not self._settings.service.watch_builds or self._settings.fleet.queues:
            return
        request = request_where_changed(
            self._database,
            self._settings,
            host=self._host.name,
            machine=self._host.name,
            owner=self._host.owner,
            at=now,
        )
        if request is not None:
            # What is remembered of the interpreters is from before the upgrade.
            check_interpreter.cache_clear()

    def _try_new_releases(self, should_stop: Callable[[], bool]) -> None:
        """Last of all: it may take hours, in which requests wait."""
        # In a fleet the GPUs are elsewhere.
        if not self._settings.watch.packages or self._settings.fleet.queues:
            return
        try:
            self._try_releases(should_stop)
        except DatabaseError:
            raise
        except CompilewatchError as error:
            _LOG.warning("New releases were not tried: %s", error)

    def _forget_samples(self, now: datetime, should_stop: Callable[[], bool]) -> None:
        days = self._settings.service.keep_samples_days
        if days is None:
            return
        trials = compact_samples(self._database, now - timedelta(days=days), should_stop=should_stop)
        if trials:
            _LOG.info("Forgot the samples of %s older than %s.", plural(trials, "trial"), plural(days, "day"))

    def _expire_reports(self, now: datetime) -> None:
        days = self._settings.report.keep_days
        if days is None:
            return
        # Reports bring pandas, which a service that keeps them for ever does without.
        from compilewatch.db.people.reports import expire_reports

        reports = expire_reports(self._database, now - timedelta(days=days), at=now)
        if reports:
            _LOG.info("Took away %s older than %s.", plural(reports, "report"), plural(days, "day"))
