"""`compilewatch schedule`: takes what is queued, the most urgent first, and has it measured."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from threading import Event, Thread

from apscheduler.schedulers.background import BackgroundScheduler

from compilewatch.db.cause.running_jobs import compiled_sentence
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import DatabaseError
from compilewatch.db.records.hosts import HostHealth, JobState
from compilewatch.db.records.requests import RunRequest, Schedule, ScheduleSpec, ScheduleWatch
from compilewatch.db.service.hosts import HEALTHS
from compilewatch.db.service.jobs import claim_compiled
from compilewatch.db.service.requests import take_request
from compilewatch.db.service.schedules import (
    SCHEDULES,
    claim_silence,
    last_result_of,
    save_due,
    schedule_watches,
)
from compilewatch.runner.config.cron import next_firings, parse_cron
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.host import owner_of
from compilewatch.runner.plan.cancellation import PreparationCancelledError, cancellable
from compilewatch.runner.plan.plan import Plan
from compilewatch.runner.process.spool import Spool
from compilewatch.runner.service.keeper import HostFacts, Keeper, Outage
from compilewatch.runner.service.serving import Measures, Serving
from compilewatch.runner.service.timetable import Host, Timetable
from compilewatch.runner.service.upkeep import Upkeep

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
        notify_silence: _Notify = lambda _watch, _schedule: None,
        notify_compiled: Callable[[list[JobState]], None] = lambda _job: None,
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
        self._notify_compiled = notify_compiled
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
        for job in claim_compiled(self._database, now):
            _LOG.warning("%s %s.", job[0].job, compiled_sentence(job))
            self._notify_compiled(job)

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


_Notify = Callable[[ScheduleWatch, Schedule], None]


def result_due_at(schedule: Schedule, last_result_at: datetime | None) -> datetime | None:
    """By when the first firing after the last result must have led to another: the firing after that one.

    So there is a whole period for its first trial. None for a paused schedule. Raises ValueError for a cron
    that cannot be read.
    """
    if schedule.paused:
        return None
    since = max(filter(None, (schedule.active_since, last_result_at)))
    trigger = parse_cron(schedule.spec.cron, schedule.spec.timezone)
    firings = next_firings(trigger, since, 2)
    return firings[1] if len(firings) == 2 else None


class Silence:
    """A dead man's switch: of a schedule that produced nothing for its period people hear, once.

    When its next result is due is stored, so that a service that was down is noticed by the one that starts
    after it. It looks after the schedules of this configuration; call `check` every few seconds.
    """

    def __init__(self, database: Database, configured: Mapping[str, ScheduleSpec], notify: _Notify) -> None:
        self._database = database
        self._configured = configured
        self._notify = notify

    def check(self, now: datetime) -> list[str]:
        """Store when results are due, tell of those that did not come, by schedule. Raises DatabaseError."""
        watches = schedule_watches(self._database)
        silent = []
        for schedule in SCHEDULES.all(self._database):
            if schedule.from_config and schedule.name not in self._configured:
                continue
            watch = self._watch(schedule, watches.get(schedule.name))
            if watch is None or watch.due_at is None or not watch.is_silent(now):
                continue
            if claim_silence(self._database, schedule.name, watch.due_at):
                last = watch.last_result_at.isoformat() if watch.last_result_at else "never"
                _LOG.error(
                    "Schedule %s has produced nothing for its period; its last result: %s.",
                    schedule.name,
                    last,
                )
                self._notify(watch, schedule)
                silent.append(schedule.name)
        return silent

    def _watch(self, schedule: Schedule, known: ScheduleWatch | None) -> ScheduleWatch | None:
        last = last_result_of(self._database, schedule.name)
        try:
            due = result_due_at(schedule, last)
        except ValueError:
            return None
        if known is None or (known.last_result_at, known.due_at) != (last, due):
            save_due(self._database, schedule.name, last_result_at=last, due_at=due)
        told_due_at = known.told_due_at if known else None
        return ScheduleWatch(schedule=schedule.name, last_result_at=last, due_at=due, told_due_at=told_due_at)
