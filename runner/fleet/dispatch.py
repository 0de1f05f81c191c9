"""The service's side of a fleet: which requests are its, where their trials go, and watching them end."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Event

from ulid import ULID

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError
from compilewatch.db.records.requests import RunRequest
from compilewatch.db.records.trial import Build
from compilewatch.db.service.fleet import announced_runs
from compilewatch.db.service.hosts import measuring_hosts
from compilewatch.db.service.requests import run_request
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.fleet.names import LONGEST_WAIT_S, is_direct, queue_of_device, queue_of_host
from compilewatch.runner.plan.canaries import canary_specs
from compilewatch.runner.plan.jobs import Executor, Job
from compilewatch.runner.plan.plan import Plan
from compilewatch.runner.plan.requests import builds_of, plan_spec
from compilewatch.runner.process.execution import Progress, RunOutcome, announce, run_jobs
from compilewatch.runner.service.timetable import Host

# Which queue a machine selector means: a machine type, a host or one GPU.

_REREAD_S = 10.0


class Places:
    """`queues` are the machine types that a service has workers for. Any number of threads may ask."""

    def __init__(
        self, database: Database, queues: Sequence[str], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._queues = queues
        self._monotonic = monotonic
        self._read: tuple[float, dict[str, set[str]]] = (float("-inf"), {})

    def queue_of(self, machine: str | None) -> str | None:
        """The first that fits: a queue by its name ("host:box", "gpu:UUID"), a machine type by its name or
        its GPU's, else a host by name, machine id or GPU, the one heard of last first. None where `machine`
        means nobody here. Raises DatabaseError.
        """
        if machine is None:
            return self._queues[0]
        if is_direct(machine):
            return machine
        for queue in self._queues:
            if fnmatchcase(queue, machine) or queue == queue_of_device(machine):
                return queue
        for host, names in self._hosts().items():
            if any(fnmatchcase(name, machine) for name in names):
                return queue_of_host(host)
        return None

    def _hosts(self) -> dict[str, set[str]]:
        now = self._monotonic()
        read_at, hosts = self._read
        if now - read_at >= _REREAD_S:
            hosts = measuring_hosts(self._database)
            self._read = (now, hosts)
        return hosts


# Ids that follow from the request: whoever plans it again, plans the same trials.


def with_stacks(plan: Plan, stacks: Mapping[str, Build]) -> Plan:
    """`plan` with the recorded builds that stand behind names; other names stay those of configured ones."""
    trials = tuple(
        spec.model_copy(update={"stack": stacks[spec.build]}) if spec.build and spec.build in stacks else spec
        for spec in plan.trials
    )
    return plan.model_copy(update={"trials": trials})


def with_ids_of(plan: Plan, request: RunRequest) -> Plan:
    """`plan` with ids made of the request and of what each run and trial is.

    A service that takes a request over from one that died continues it: what is queued, running or measured
    already is known under the same id.
    """
    runs = {run.run_id: _id(request, "run", run.build) for run in plan.runs}
    return plan.model_copy(
        update={
            "runs": tuple(run.model_copy(update={"run_id": runs[run.run_id]}) for run in plan.runs),
            "trials": tuple(
                spec.model_copy(
                    update={
                        "run_id": runs[spec.run_id],
                        "trial_id": _id(
                            request, "trial", spec.build, spec.workload.name, spec.strategy.name, spec.round
                        ),
                    }
                )
                for spec in plan.trials
            ),
        }
    )


def jobs_with_ids(plan: Plan, request: RunRequest) -> Iterator[Job]:
    """The trials of `plan`, with the control series before and after them, under ids of the request."""
    yield from _canaries(plan, request, "before")
    yield from (Job((spec,)) for spec in plan.trials)
    yield from _canaries(plan, request, "after")


def _canaries(plan: Plan, request: RunRequest, when: str) -> Iterator[Job]:
    for run in plan.runs if plan.canaries else ():
        first = next(spec for spec in plan.trials if spec.run_id == run.run_id)
        named = (
            spec.model_copy(update={"trial_id": _id(request, "canary", run.build, spec.workload.name, when)})
            for spec in canary_specs(first)
        )
        yield Job(tuple(named), is_canaries=True)


def _id(request: RunRequest, *parts: object) -> str:
    """A ULID of the time at which the request was asked, and of a hash in place of chance."""
    digest = hashlib.sha256(repr((request.request_id, *parts)).encode()).digest()
    milliseconds = int(request.asked_at.timestamp() * 1000)
    return str(ULID.from_bytes(milliseconds.to_bytes(6, "big") + digest[:10]))


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
        self._has_warned = False

    def check(self) -> None:
        """Raises DatabaseError while the database is away."""
        now = self._monotonic()
        if now < self._next:
            return
        self._next = now + _ATTENDANCE_S
        if self._executor.capacity():
            if self._has_warned:
                _LOG.info("A worker is alive again.")
            self._absent_since, self._has_warned = None, False
        elif self._absent_since is None:
            self._absent_since = now
        elif now - self._absent_since >= self._patience_s and not self._has_warned:
            _LOG.warning("No worker is alive; the trials of %s wait for one.", self._queue)
            self._has_warned = True


class Fleet:
    """Plans and dispatches requests, each in a thread of its own; the service calls `plan`, then `execute`.

    A request goes to the queue that its machine selector means (`runner.fleet.dispatch`), one without to the
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

    def accepts(self, machine: str | None, host: Host) -> bool:  # noqa: ARG002
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

    def warm_up(self, settings: Settings) -> None:
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

        def is_abandoned() -> bool:
            attendance.check()
            return is_cancelled() and not self._is_cancelled(request)

        try:
            measured, failed = run_jobs(
                jobs_with_ids(plan, request),
                executor,
                self._progress,
                # Asked of the database each time: what is queued after the cancellation goes out again.
                lambda: self._is_cancelled(request),
                is_abandoned=is_abandoned,
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
