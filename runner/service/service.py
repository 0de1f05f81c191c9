"""`compilewatch schedule`: takes what is queued, the most urgent first, and has it measured."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from threading import Event, Thread

from apscheduler.schedulers.background import BackgroundScheduler

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import DatabaseError
from compilewatch.db.records.hosts import HostHealth
from compilewatch.db.records.requests import RunRequest
from compilewatch.db.records.schedules import ScheduleSpec
from compilewatch.db.service.hosts import HEALTHS
from compilewatch.db.service.requests import take_request
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.plan.cancellation import PreparationCancelledError, cancellable
from compilewatch.runner.plan.plan import Plan
from compilewatch.runner.service.host_facts import HostFacts
from compilewatch.runner.service.keeper import Keeper
from compilewatch.runner.service.measures import Measures
from compilewatch.runner.service.outage import Outage
from compilewatch.runner.service.owner import owner_of
from compilewatch.runner.service.serving import Serving
from compilewatch.runner.service.silence import Notify, Silence
from compilewatch.runner.service.timetable import Host, Timetable
from compilewatch.runner.service.upkeep import Upkeep
from compilewatch.runner.storage.spool import Spool

_LOG = logging.getLogger("compilewatch.schedule")

POLL_S = 0.5
MOST_AT_ONCE = 16
"""Requests that one service has in flight, where workers measure them."""
_JOIN_S = 2.0


def this_host() -> Host:
    """This host, and this process of it."""
    name = socket.gethostname()
    return Host(name, owner_of(name))


def configured_schedules(settings: Settings) -> dict[str, ScheduleSpec]:
    """The [[schedule]] entries by name, as they are stored."""
    return {
        entry.name: ScheduleSpec.model_validate(entry.model_dump(exclude={"name"}))
        for entry in settings.schedule
    }


class Service:
    """One process that takes requests. Any number of them may share a database."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        measures: Measures,
        *,
        judge: Callable[[Plan], None] = lambda _plan: None,
        notify_silence: Notify = lambda _watch, _schedule: None,
        try_releases: Callable[[Callable[[], bool]], object] = lambda _should_stop: None,
        host: Host | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings = settings
        self._database = database
        self._measures = measures
        self._judge = judge
        self._clock = clock
        self._host = host or this_host()
        self._outage = Outage()
        configured = configured_schedules(settings)
        self._spool = Spool(settings.data_dir / "spool")
        self._silence = Silence(database, configured, notify_silence)
        self._timetable = Timetable(
            database,
            BackgroundScheduler(),
            self._host,
            configured,
            clock,
            elsewhere=self._accepts if measures.elsewhere else None,
        )
        self._upkeep = Upkeep(settings, database, self._host, self._spool, try_releases)
        self._under_way: dict[Future[None], RunRequest] = {}

    def run(self, stop: Event) -> None:
        """Work until `stop`; `judge` hears each plan that was measured whole.

        A trial that runs at the stop is stored as cancelled, its request queued again. A database that is
        away is waited for. Raises DatabaseError where it never answered.
        """
        self._timetable.start()
        facts = HostFacts(self._database, self._host, self._settings.data_dir, clock=self._clock)
        keeper = Keeper(
            self._database,
            self._timetable,
            owner=self._host.owner,
            clock=self._clock,
            stop=stop,
            facts=facts,
            outage=self._outage,
            asks_devices=not self._measures.elsewhere,
            watch=self._watch,
        )
        keeper.start()
        Thread(target=self._warm_up, args=(stop,), name="look-ahead", daemon=True).start()
        try:
            self._take_and_serve(self._serving(keeper, stop), stop)
        finally:
            stop.set()
            self._timetable.stop()
            keeper.join(_JOIN_S)
            try:
                facts.stopped()
            except DatabaseError as error:
                _LOG.warning("That the service stopped could not be noted: %s", error)

    def _serving(self, keeper: Keeper, stop: Event) -> Serving:
        return Serving(
            self._settings,
            self._database,
            self._measures,
            judge=self._judge,
            upkeep=self._upkeep,
            outage=self._outage,
            keeper=keeper,
            owner=self._host.owner,
            clock=self._clock,
            stop=stop,
        )

    def _warm_up(self, stop: Event) -> None:
        with suppress(PreparationCancelledError), cancellable(stop.is_set):
            self._measures.warm_up(self._settings)

    def _accepts(self, machine: str | None) -> bool:
        return self._measures.accepts(machine, self._host)

    def _watch(self, now: datetime) -> None:
        """What people see of this service when they look after it. Raises DatabaseError."""
        health = HostHealth(
            host=self._host.name,
            seen_at=now,
            spool_trials=len(self._spool.waiting()),
            spool_bytes=self._spool.size_bytes(),
            database_errors=self._outage.errors,
        )
        HEALTHS.put(self._database, health)
        self._silence.check(now)

    def _take_and_serve(self, serving: Serving, stop: Event) -> None:
        patience = self._outage.patience()
        with ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="serving") as threads:
            try:
                while not stop.is_set():
                    self._collect_ended()
                    try:
                        request = self._next(stop)
                        patience.recovered()
                    except DatabaseError as error:
                        patience.failed(error, stop)
                        continue
                    if request is not None:
                        self._begin(request, serving, threads)
            finally:
                stop.set()
        self._collect_ended()

    def _begin(self, request: RunRequest, serving: Serving, threads: ThreadPoolExecutor) -> None:
        if self._measures.elsewhere:
            self._under_way[threads.submit(serving.serve, request)] = request
        else:
            # Nothing else goes on beside a measurement here, not even a look at the queue.
            serving.serve(request)

    def _collect_ended(self) -> None:
        """Forget what is done; raises what nobody foresaw, so that it ends the service as it would here."""
        for done in [future for future in self._under_way if future.done()]:
            del self._under_way[done]
            done.result()

    def _next(self, stop: Event) -> RunRequest | None:
        under_way = self._under_way.values()
        request = None
        if len(under_way) < MOST_AT_ONCE:
            request = take_request(
                self._database,
                owner=self._host.owner,
                at=self._clock(),
                fits=lambda each: (
                    self._accepts(each.spec.machine) and self._measures.has_room(each, under_way)
                ),
                counts=not self._measures.elsewhere,
            )
        if request is None:
            self._upkeep.when_idle(self._clock, stop.is_set)
            stop.wait(POLL_S)
        return request
