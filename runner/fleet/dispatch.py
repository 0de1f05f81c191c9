"""The service's side of a fleet: which requests are its, where their trials go, and watching them end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path
from threading import Event

from db.errors import ConfigError
from db.queries.fleet import announced_runs
from db.queries.schedule import run_request
from db.requests import RunRequest
from db.session import Database
from runner.config import BuildSettings, Settings
from runner.execution import Progress, RunOutcome, announce, work_off
from runner.executors.contract import Executor
from runner.fleet.identities import jobs_with_ids, with_ids_of, with_stacks
from runner.fleet.names import LONGEST_WAIT_S
from runner.fleet.places import Places
from runner.plan import Plan
from runner.schedule.planning import builds_of, plan_spec
from runner.schedule.timetable import Host

_LOG = logging.getLogger("compilewatch.fleet")
_POLL_S = 0.5
_ATTENDANCE_S = 5.0

MakeExecutor = Callable[[str, int], Executor]
"""An executor for a queue, at a priority."""


class Attendance:
    """Says where no worker has been alive for `patience_s`, and when one is again; call `look` often.

    Not at once: after an outage workers are back some seconds after the database, and at the start of
    everything after the service.
    """

    def __init__(
        self,
        executor: Executor,
        queue: str,
        *,
        patience_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._executor = executor
        self._queue = queue
        self._patience_s = patience_s
        self._monotonic = monotonic
        self._next = float("-inf")
        self._absent_since: float | None = None
        self._has_said = False

    def look(self) -> None:
        """Raises DatabaseError while the database is away."""
        now = self._monotonic()
        if now < self._next:
            return
        self._next = now + _ATTENDANCE_S
        if self._executor.capacity():
            if self._has_said:
                _LOG.info("A worker is alive again.")
            self._absent_since, self._has_said = None, False
        elif self._absent_since is None:
            self._absent_since = now
        elif now - self._absent_since >= self._patience_s and not self._has_said:
            _LOG.warning("No worker is alive; the trials of %s wait for one.", self._queue)
            self._has_said = True


class Fleet:
    """Plans and dispatches requests, each in a thread of its own; the service calls `plan`, then `execute`.

    A request goes to the queue that its machine selector means (`runner.fleet.places`), one without to the
    first machine type of `[fleet] queues`.
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
        self._places = Places(database, settings.fleet.queues)
        self._planned: dict[str, RunRequest] = {}

    elsewhere = True

    def is_meant(self, machine: str | None, host: Host) -> bool:  # noqa: ARG002
        return self._places.queue_of(machine) is not None

    def has_room(self, request: RunRequest, under_way: Collection[RunRequest]) -> bool:
        """Whether none of those goes to the same queue with the same priority or a higher one.

        So every machine type has work, a more urgent request overtakes in the queue itself, and of equal ones
        the first is done before the next begins.
        """
        queue = self.queue_of(request)
        return not any(
            self.queue_of(other) == queue and other.priority >= request.priority for other in under_way
        )

    def look_ahead(self, settings: Settings) -> None:
        """Nothing: what the interpreters are like, the workers' hosts know."""

    def queue_of(self, request: RunRequest) -> str | None:
        """Where the trials of a request go; None where it is for others. Raises DatabaseError."""
        return self._places.queue_of(request.spec.machine)

    def plan(self, settings: Settings, request: RunRequest) -> Plan:
        """What the request asks for, under ids that follow from it. Raises like `plan_spec`."""
        stacks = {f"stack-{number}": stack for number, stack in enumerate(request.spec.stacks, start=1)}
        # Which of its builds is a recorded one, the host that measures finds out.
        builds = [BuildSettings(name=name, python=Path(name)) for name in stacks]
        plan = plan_spec(
            settings,
            request.spec,
            builds or builds_of(settings, request.spec),
            device=self._device(request),
        )
        plan = with_ids_of(with_stacks(plan, stacks), request)
        self._planned[plan.runs[0].run_id] = request
        return plan

    def execute(self, plan: Plan, is_cancelled: Callable[[], bool]) -> RunOutcome:
        """Have the plan measured by workers; what a service before this one began goes on.

        Where this service is to stop, or the request is with another one, the jobs stay queued. Raises
        DatabaseError while the database is away.
        """
        request = self._planned.pop(plan.runs[0].run_id)
        queue = self.queue_of(request)
        if queue is None:
            raise ConfigError(f"No queue of this service is {request.spec.machine!r}.")
        known = announced_runs(self._database, [run.run_id for run in plan.runs])
        announce(plan, self._database, self._clock(), without=known)
        executor = self._make_executor(queue, request.priority)
        attendance = Attendance(executor, queue, patience_s=self._settings.fleet.stalled_s + LONGEST_WAIT_S)

        def is_left() -> bool:
            attendance.look()
            return is_cancelled() and not self._is_cancelled(request)

        try:
            measured, failed = work_off(
                jobs_with_ids(plan, request),
                executor,
                self._progress,
                # Asked of the database each time: what is queued after the cancellation goes out again.
                lambda: self._is_cancelled(request),
                is_left=is_left,
                wait_s=_POLL_S,
            )
            interrupted = is_cancelled() or self._is_cancelled(request)
        finally:
            executor.close()
        return RunOutcome(measured, failed, waiting=0, interrupted=interrupted)

    def _is_cancelled(self, request: RunRequest) -> bool:
        """Whether somebody wants it no more, rather than this service ending or having lost it."""
        return not self._stop.is_set() and run_request(self._database, request.request_id).cancel_asked

    def _device(self, request: RunRequest) -> str:
        """Which strategies mean something is a matter of the kind of device; its number is the worker's."""
        configured = self._settings.run.device.partition(":")[0]
        if configured != "auto":
            return "cpu" if configured == "cpu" else "cuda:0"
        return "cpu" if (self.queue_of(request) or "").startswith("cpu") else "cuda:0"
