"""What the service does while nothing is measured: stores what waits, sees upgrades, forgets what is old."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError, DatabaseError
from compilewatch.db.records.ids import identity
from compilewatch.db.records.requests import RequestKind, RequestSpec, RunRequest
from compilewatch.db.service.requests import new_request, save_request
from compilewatch.db.service.schedules import measured_stacks
from compilewatch.db.store.removal import compact_samples
from compilewatch.db.units import plural
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.device.state import device_facts
from compilewatch.runner.plan.host_stacks import torch_facts
from compilewatch.runner.plan.interpreter import check_interpreter
from compilewatch.runner.process.spool import Spool, store_waiting
from compilewatch.runner.process.trace import forget_traces
from compilewatch.runner.service.timetable import Host

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
        from compilewatch.db.service.reports import expire_reports

        reports = expire_reports(self._database, now - timedelta(days=days), at=now)
        if reports:
            _LOG.info("Took away %s older than %s.", plural(reports, "report"), plural(days, "day"))


@dataclass(frozen=True)
class _Fingerprint:
    """What decides whether measured numbers still hold, as a build of a trial has it."""

    torch: str
    torch_variant: str | None
    driver: str | None

    def __str__(self) -> str:
        variant = f" ({self.torch_variant})" if self.torch_variant else ""
        return f"torch {self.torch}{variant}" + (f" on driver {self.driver}" if self.driver else "")


def request_where_changed(
    database: Database, settings: Settings, *, host: str, machine: str, owner: str, at: datetime
) -> RunRequest | None:
    """Queue the suite of [run] where a build of this host was never measured on it, for all that are there.

    `machine` selects this host. The request's id follows from what is new, so that neither another process
    nor the next hour asks again. None where nothing is new, or nothing was ever measured on this host. Raises
    DatabaseError.
    """
    known = measured_stacks(database, host)
    if not known:
        return None
    # Where only the CPU was ever measured, the driver of a GPU decides nothing.
    builds = fingerprints(settings, on_gpu=any(driver for *_, driver in known))
    new = {fingerprint for fingerprint in builds.values() if astuple(fingerprint) not in known}
    if not new:
        return None
    suite = settings.run.suite
    names = sorted(map(str, new))
    key = identity({"host": host, "suite": suite, "stacks": names})
    # One that is gone would fail the others' request.
    is_partial = len(builds) < len(settings.builds)
    request = new_request(
        f"upgrade-{key}",
        RequestKind.UPGRADE,
        RequestSpec(suite=suite, machine=machine, builds=tuple(filter(None, builds)) if is_partial else ()),
        by=owner,
        at=at,
        note=f"never measured on {host}: {', '.join(names)}",
    )
    if not save_request(database, request):
        return None
    _LOG.info("New on this host: %s. Suite %s is queued.", ", ".join(names), suite)
    return request


def fingerprints(settings: Settings, *, on_gpu: bool) -> dict[str | None, _Fingerprint]:
    """Of every configured build by name, of this interpreter as None where there is none.

    Those without a torch, or that cannot be asked, are left out.
    """
    driver = device_facts("cuda:0").driver if on_gpu else None
    by_name = {
        build.name if build else None: _installed_torch(build, driver) for build in settings.builds or (None,)
    }
    return {name: each for name, each in by_name.items() if each}


def _installed_torch(build: BuildSettings | None, driver: str | None) -> _Fingerprint | None:
    """The torch behind an interpreter, None where there is none or it cannot be read, which is logged."""
    python = str(build.python) if build else sys.executable
    try:
        facts = torch_facts(python)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        _LOG.warning("The torch of %s cannot be read: %s", python, error)
        return None
    return None if facts is None else _Fingerprint(facts["release"], facts["variant"], driver)
