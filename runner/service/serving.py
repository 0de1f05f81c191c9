"""One request from its beginning to its end: planned, measured on its own host or elsewhere, judged, and how
it ended noted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from threading import Event, Lock
from typing import Any, Protocol

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError, DatabaseError
from compilewatch.db.records.requests import RequestState, RunRequest, RunStatus
from compilewatch.db.service.requests import end_request, note_runs, unended_runs
from compilewatch.db.store.trials import end_run
from compilewatch.db.units import plural
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.host import require_space
from compilewatch.runner.plan.builds import interpreter_facts
from compilewatch.runner.plan.cancellation import PreparationCancelledError, cancellable
from compilewatch.runner.plan.plan import Plan, plan_request
from compilewatch.runner.process.execution import RunOutcome
from compilewatch.runner.service.keeper import Keeper, Outage, Patience
from compilewatch.runner.service.timetable import Host
from compilewatch.runner.service.upkeep import Upkeep

_LOG = logging.getLogger("compilewatch.schedule")

Execute = Callable[[Plan, Callable[[], bool]], RunOutcome]
"""Measures a plan until it is done or the second argument says so, as `runner.process.execution.execute`
does."""


class Measures(Protocol):
    """Any number of threads may use one, each for a request of its own."""

    elsewhere: bool
    """Whether this host only watches: then a request that another service began goes on, and does not begin
    anew.
    """

    def accepts(self, machine: str | None, host: Host) -> bool:
        """Whether what is asked of `machine`, a selector, is for this service. Raises DatabaseError."""
        ...

    def has_room(self, request: RunRequest, under_way: Collection[RunRequest]) -> bool:
        """Whether `request` may begin while those are `under_way`."""
        ...

    def plan(self, settings: Settings, request: RunRequest) -> Plan:
        """The trials that `request` asks for. Raises CompilewatchError where it comes to nothing."""
        ...

    def execute(self, plan: Plan, is_cancelled: Callable[[], bool]) -> RunOutcome:
        """Have a plan of `plan` measured until it is done or `is_cancelled`. Raises DatabaseError."""
        ...

    def warm_up(self, settings: Settings) -> None:
        """Do early what would keep the first request waiting."""
        ...


class Here:
    """Measures on this host, one request at a time."""

    elsewhere = False

    def __init__(self, execute: Execute) -> None:
        self.execute = execute

    def accepts(self, machine: str | None, host: Host) -> bool:
        return host.matches(machine)

    def has_room(self, request: RunRequest, under_way: Collection[RunRequest]) -> bool:  # noqa: ARG002
        return not under_way

    def plan(self, settings: Settings, request: RunRequest) -> Plan:
        require_space(settings.data_dir)
        return plan_request(settings, request.spec)

    def warm_up(self, settings: Settings) -> None:
        """The first look into an interpreter imports torch."""
        try:
            interpreter_facts(settings.builds)
        except CompilewatchError as error:
            _LOG.warning("%s", error)


@dataclass(eq=False)
class Serving:
    """Serves requests that this service took, each in the thread that calls `serve`, until `stop`."""

    settings: Settings
    database: Database
    measures: Measures
    _: KW_ONLY
    judge: Callable[[Plan], None]
    upkeep: Upkeep
    outage: Outage
    keeper: Keeper
    owner: str
    clock: Callable[[], datetime]
    stop: Event
    _judging: Lock = field(init=False, default_factory=Lock)

    def serve(self, request: RunRequest) -> None:
        """Measure a request that was taken, and say how it ended."""
        _LOG.info("Request %s of %s begins.", request.request_id, request.asked_by)
        should_end = self.keeper.hold(request.request_id)
        patience = self.outage.patience()
        try:
            state, note = self._measure(request, should_end, patience)
            self._end(request, state, note, patience)
        finally:
            self.keeper.drop(request.request_id)

    def _measure(
        self, request: RunRequest, should_end: Event, patience: Patience
    ) -> tuple[RequestState, str]:
        def is_cancelled() -> bool:
            return self.stop.is_set() or should_end.is_set()

        try:
            plan = self._planned(request, is_cancelled)
            if plan is None:
                return self._interrupted()
            run_ids = [run.run_id for run in plan.runs]
            begun: dict[str, Any] = {"owner": self.owner, "at": self.clock()}
            if not note_runs(self.database, request.request_id, run_ids, **begun):
                return self._interrupted()
            outcome = self.measures.execute(plan, is_cancelled)
        except DatabaseError as error:
            return RequestState.QUEUED, str(error)
        except CompilewatchError as error:
            return RequestState.FAILED, str(error)
        if outcome.interrupted:
            return self._interrupted()
        self._conclude(plan, patience)
        return RequestState.FINISHED, f"{plural(outcome.measured, 'trial')}, {outcome.failed} failed"

    def _conclude(self, plan: Plan, patience: Patience) -> None:
        """See that everything measured is stored, then have it judged; waits for the database."""
        while not self.stop.is_set():
            try:
                self.upkeep.store_waiting()
                for run_id in unended_runs(self.database, [run.run_id for run in plan.runs]):
                    end_run(self.database, run_id, self.clock(), RunStatus.FINISHED)
                self._judge_runs(plan)
                patience.recovered()
                return
            except DatabaseError as error:
                patience.failed(error, self.stop)

    def _judge_runs(self, plan: Plan) -> None:
        """A judge that fails must not have what is stored measured again and again."""
        try:
            with self._judging:
                self.judge(plan)
        except DatabaseError:
            raise
        except Exception:  # noqa: BLE001
            run_ids = ", ".join(run.run_id for run in plan.runs)
            _LOG.exception("What was measured is stored and could not be judged: run %s.", run_ids)

    def _planned(self, request: RunRequest, should_end: Callable[[], bool]) -> Plan | None:
        """The plan, or None once `should_end`: planning may wait for interpreters that import torch."""
        try:
            with cancellable(should_end):
                return self.measures.plan(self.settings, request)
        except PreparationCancelledError:
            return None

    def _end(self, request: RunRequest, state: RequestState, note: str, patience: Patience) -> None:
        """Store how it ended, waiting for the database unless the service is to stop."""
        while True:
            try:
                stored = end_request(
                    self.database, request.request_id, state, owner=self.owner, at=self.clock(), note=note
                )
            except DatabaseError as error:
                if self.stop.is_set():
                    _LOG.warning("The end of request %s could not be noted: %s", request.request_id, error)
                    return
                patience.failed(error, self.stop)
                continue
            patience.recovered()
            end = stored.value if stored else "with another service"
            _LOG.info("Request %s is %s: %s.", request.request_id, end, note.rstrip("."))
            return

    def _interrupted(self) -> tuple[RequestState, str]:
        if self.stop.is_set():
            return RequestState.QUEUED, "the service stopped"
        return RequestState.CANCELLED, "cancelled while it ran"
