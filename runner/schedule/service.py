"""`compilewatch schedule`: takes what is queued, the most urgent first, and measures it."""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from threading import Event, Thread
from typing import Protocol

from apscheduler.schedulers.background import BackgroundScheduler

from db.errors import CompilewatchError, DatabaseError
from db.queries.schedule import unended_runs
from db.requests import RequestSpec, RequestState, RunRequest
from db.runs import RunStatus
from db.schedules import ScheduleSpec
from db.session import Database
from db.store import end_run
from db.store_request import end_request, note_runs, take_request
from db.units import plural
from runner.config import Settings
from runner.execution import Outcome
from runner.free_space import require_space
from runner.plan import Plan
from runner.schedule.health import ErrorCount, Health
from runner.schedule.host_facts import HostFacts
from runner.schedule.keeper import Keeper
from runner.schedule.outage import Outage
from runner.schedule.planning import build_facts, plan_request
from runner.schedule.silence import Silence, Tell
from runner.schedule.timetable import Host, Timetable
from runner.schedule.upkeep import Upkeep
from runner.spool import Spool

_LOG = logging.getLogger("compilewatch.schedule")

POLL_S = 0.5
_TICK_S = 0.1
_JOIN_S = 2.0

Execute = Callable[[Plan, Callable[[], bool]], Outcome]
"""Measures a plan until it is done or the second argument says so, as `runner.execution.execute` does."""


class Measures(Protocol):
    """Where a service has its requests measured: on its host, or elsewhere."""

    continues: bool
    """Whether a request that another service began goes on, rather than being begun again."""

    def is_mine(self, request: RunRequest, host: Host) -> bool: ...

    def plan(self, settings: Settings, request: RunRequest) -> Plan: ...

    def execute(self, plan: Plan, is_cancelled: Callable[[], bool]) -> Outcome: ...

    def look_ahead(self, settings: Settings) -> None:
        """Do early what would keep the first request waiting."""
        ...


class Here:
    """Measures on this host."""

    continues = False

    def __init__(
        self, execute: Execute, plan: Callable[[Settings, RequestSpec], Plan] = plan_request
    ) -> None:
        self._execute = execute
        self._plan = plan

    def is_mine(self, request: RunRequest, host: Host) -> bool:
        return host.is_meant_by(request.spec.machine)

    def plan(self, settings: Settings, request: RunRequest) -> Plan:
        require_space(settings.data_dir)
        return self._plan(settings, request.spec)

    def execute(self, plan: Plan, is_cancelled: Callable[[], bool]) -> Outcome:
        return self._execute(plan, is_cancelled)

    def look_ahead(self, settings: Settings) -> None:
        """The first look into an interpreter imports torch."""
        try:
            build_facts(settings.builds)
        except CompilewatchError as error:
            _LOG.warning("%s", error)


def this_host() -> Host:
    """This host, and this process of it; process ids come again, in containers at once."""
    name = socket.gethostname()
    return Host(name, f"{name}:{os.getpid()}:{secrets.token_hex(2)}")


def configured_schedules(settings: Settings) -> dict[str, ScheduleSpec]:
    """The [[schedule]] entries by name, as they are stored."""
    return {
        entry.name: ScheduleSpec.model_validate(entry.model_dump(exclude={"name"}))
        for entry in settings.schedule
    }


class Service:
    """One measuring process of a host. Any number of them may share a database."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        measures: Measures,
        *,
        judge: Callable[[Plan], None] = lambda _plan: None,
        tell_silence: Tell = lambda _watch, _schedule: None,
        host: Host | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings = settings
        self._database = database
        self._measures = measures
        self._judge = judge
        self._clock = clock
        self._host = host or this_host()
        self._errors = ErrorCount()
        self._outage = Outage(self._errors)
        configured = configured_schedules(settings)
        spool = Spool(settings.data_dir / "spool")
        self._silence = Silence(database, configured, tell_silence)
        self._health = Health(database, self._host.name, spool, self._errors)
        self._timetable = Timetable(database, BackgroundScheduler(), self._host, configured, clock)
        self._upkeep = Upkeep(settings, database, self._host, spool)

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
            errors=self._errors,
            watch=self._watch,
        )
        keeper.start()
        ahead = partial(self._measures.look_ahead, self._settings)
        Thread(target=ahead, name="look-ahead", daemon=True).start()
        try:
            while not stop.is_set():
                try:
                    request = self._next(stop)
                    self._outage.over()
                except DatabaseError as error:
                    self._outage.failed(error, stop)
                    continue
                if request is not None:
                    self._serve(request, keeper, stop)
        finally:
            stop.set()
            self._timetable.stop()
            keeper.join(_JOIN_S)
            try:
                facts.stopped()
            except DatabaseError as error:
                _LOG.warning("That the service stopped could not be noted: %s", error)

    def _watch(self, now: datetime) -> None:
        """What people see of this service when they look after it. Raises DatabaseError."""
        self._health.say(now)
        self._silence.look(now)

    def _next(self, stop: Event) -> RunRequest | None:
        request = take_request(
            self._database,
            owner=self._host.owner,
            at=self._clock(),
            fits=lambda each: self._measures.is_mine(each, self._host),
            counts=not self._measures.continues,
        )
        if request is None:
            self._upkeep.when_idle(self._clock, stop.is_set)
            stop.wait(POLL_S)
        return request

    def _serve(self, request: RunRequest, keeper: Keeper, stop: Event) -> None:
        """Measure a request that was taken, and say how it ended."""
        _LOG.info("Request %s of %s begins.", request.request_id, request.asked_by)
        should_end = keeper.hold(request.request_id)
        try:
            state, note = self._measure(request, should_end, stop)
            self._end(request, state, note, stop)
        finally:
            keeper.drop()

    def _measure(self, request: RunRequest, should_end: Event, stop: Event) -> tuple[RequestState, str]:
        try:
            plan = self._planned(request, lambda: stop.is_set() or should_end.is_set())
            if plan is None:
                return _interrupted(stop)
            note_runs(self._database, request.request_id, [run.run_id for run in plan.runs])
            outcome = self._measures.execute(plan, lambda: stop.is_set() or should_end.is_set())
        except DatabaseError as error:
            return RequestState.QUEUED, str(error)
        except CompilewatchError as error:
            return RequestState.FAILED, str(error)
        if outcome.interrupted:
            return _interrupted(stop)
        self._conclude(plan, stop)
        return RequestState.FINISHED, f"{plural(outcome.measured, 'trial')}, {outcome.failed} failed"

    def _conclude(self, plan: Plan, stop: Event) -> None:
        """See that everything measured is stored, then have it judged; waits for the database."""
        while not stop.is_set():
            try:
                self._upkeep.store_waiting()
                for run_id in unended_runs(self._database, [run.run_id for run in plan.runs]):
                    end_run(self._database, run_id, self._clock(), RunStatus.FINISHED)
                self._judged(plan)
                self._outage.over()
                return
            except DatabaseError as error:
                self._outage.failed(error, stop)

    def _judged(self, plan: Plan) -> None:
        """A judge that fails must not have what is stored measured again and again."""
        try:
            self._judge(plan)
        except DatabaseError:
            raise
        except Exception:  # noqa: BLE001
            run_ids = ", ".join(run.run_id for run in plan.runs)
            _LOG.exception("What was measured is stored and could not be judged: run %s.", run_ids)

    def _planned(self, request: RunRequest, should_end: Callable[[], bool]) -> Plan | None:
        """The plan, or None once `should_end`: planning may wait for interpreters that import torch."""
        result: list[Plan | BaseException] = []

        def plan() -> None:
            try:
                result.append(self._measures.plan(self._settings, request))
            except BaseException as error:  # noqa: BLE001
                result.append(error)

        thread = Thread(target=plan, name="planning", daemon=True)
        thread.start()
        while thread.is_alive() and not should_end():
            thread.join(_TICK_S)
        if thread.is_alive():
            return None
        (found,) = result
        if isinstance(found, BaseException):
            raise found
        return found

    def _end(self, request: RunRequest, state: RequestState, note: str, stop: Event) -> None:
        """Store how it ended, waiting for the database unless the service is to stop."""
        while True:
            try:
                stored = end_request(
                    self._database,
                    request.request_id,
                    state,
                    owner=self._host.owner,
                    at=self._clock(),
                    note=note,
                )
            except DatabaseError as error:
                if stop.is_set():
                    _LOG.warning("The end of request %s could not be noted: %s", request.request_id, error)
                    return
                self._outage.failed(error, stop)
                continue
            self._outage.over()
            said = stored.value if stored else "with another service"
            _LOG.info("Request %s is %s: %s.", request.request_id, said, note.rstrip("."))
            return


def _interrupted(stop: Event) -> tuple[RequestState, str]:
    if stop.is_set():
        return RequestState.QUEUED, "the service stopped"
    return RequestState.CANCELLED, "cancelled while it ran"
