"""The service's side of a fleet: which requests are its, where their trials go, and watching them end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from fnmatch import fnmatchcase
from threading import Event

from db.errors import ConfigError
from db.queries.fleet import announced_runs
from db.queries.schedule import run_request
from db.requests import RunRequest
from db.session import Database
from runner.config import Settings
from runner.execution import Outcome, Progress, announce, work_off
from runner.executors.contract import Executor
from runner.fleet.identities import jobs_with_ids, with_ids_of
from runner.fleet.names import is_direct
from runner.plan import Plan
from runner.schedule.planning import builds_of, plan_spec
from runner.schedule.timetable import Host

_LOG = logging.getLogger("compilewatch.fleet")
_POLL_S = 0.5

MakeExecutor = Callable[[str, int], Executor]
"""An executor for a queue, at a priority."""


class Fleet:
    """Plans and dispatches one request at a time; the service calls `plan`, then `execute`.

    A request goes to the queue that its machine selector means: a machine type of `[fleet] queues`, the
    first where it means any, or one host ("host:NAME") or GPU ("gpu:UUID").
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        make_executor: MakeExecutor,
        *,
        progress: Progress,
        stop: Event,
        clock: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._database = database
        self._make_executor = make_executor
        self._progress = progress
        self._stop = stop
        self._clock = clock
        self._planned: tuple[RunRequest, Plan] | None = None

    continues = True

    def is_mine(self, request: RunRequest, host: Host) -> bool:  # noqa: ARG002
        return self.queue_of(request) is not None

    def look_ahead(self, settings: Settings) -> None:
        """Nothing: what the interpreters are like, the workers' hosts know."""

    def queue_of(self, request: RunRequest) -> str | None:
        """Where the trials of a request go; None where it is for others."""
        machine = request.spec.machine
        if machine is not None and is_direct(machine):
            return machine
        queues = self._settings.fleet.queues
        return next((queue for queue in queues if machine is None or fnmatchcase(queue, machine)), None)

    def plan(self, settings: Settings, request: RunRequest) -> Plan:
        """What the request asks for, under ids that follow from it. Raises like `plan_spec`."""
        builds = builds_of(settings, request.spec)
        plan = plan_spec(settings, request.spec, builds, device=self._device(request))
        plan = with_ids_of(plan, request)
        self._planned = (request, plan)
        return plan

    def execute(self, plan: Plan, is_cancelled: Callable[[], bool]) -> Outcome:
        """Have the plan measured by workers; what a service before this one began goes on.

        Where this service is to stop, or the request is with another one, the jobs stay queued. Raises
        DatabaseError while the database is away.
        """
        if self._planned is None or self._planned[1] is not plan:
            raise ConfigError("This plan is of another request.")
        request, _ = self._planned
        queue = self.queue_of(request)
        if queue is None:
            raise ConfigError(f"No queue of this service is {request.spec.machine!r}.")
        known = announced_runs(self._database, [run.run_id for run in plan.runs])
        announce(plan, self._database, self._clock(), without=known)
        executor = self._make_executor(queue, request.priority)
        try:
            if executor.capacity() == 0:
                _LOG.warning("No worker is alive; the trials of %s wait for one.", queue)
            measured, failed = work_off(
                jobs_with_ids(plan, request),
                executor,
                self._progress,
                lambda: is_cancelled() and self._is_cancelled(request),
                is_left=lambda: is_cancelled() and not self._is_cancelled(request),
                wait_s=_POLL_S,
            )
        finally:
            executor.close()
        return Outcome(measured, failed, waiting=0, interrupted=is_cancelled())

    def _is_cancelled(self, request: RunRequest) -> bool:
        """Whether somebody wants it no more, rather than this service ending or having lost it."""
        return not self._stop.is_set() and run_request(self._database, request.request_id).cancel_asked

    def _device(self, request: RunRequest) -> str:
        """Which strategies mean something is a matter of the kind of device; its number is the worker's."""
        configured = self._settings.run.device.partition(":")[0]
        if configured != "auto":
            return "cpu" if configured == "cpu" else "cuda:0"
        return "cpu" if (self.queue_of(request) or "").startswith("cpu") else "cuda:0"
