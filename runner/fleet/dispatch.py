"""The service's side of a fleet: which requests are its, where their trials go, and watching them end; and
the executor that has jobs measured by its workers, on Procrastinate's queue.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Event

import psycopg
from procrastinate import SyncPsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import Job as QueueJob
from ulid import ULID

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError, DatabaseError, NotFoundError
from compilewatch.db.queries.records import trial_record
from compilewatch.db.records.requests import RunRequest
from compilewatch.db.records.trial import Build, Trial
from compilewatch.db.service.fleet import announced_runs, cancel_jobs, live_workers, queued_jobs
from compilewatch.db.service.hosts import measuring_hosts
from compilewatch.db.service.requests import run_request
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.fleet.message import message_of
from compilewatch.runner.fleet.names import (
    LONGEST_WAIT_S,
    TASK,
    is_direct,
    lock_of_queue,
    queue_of_device,
    queue_of_host,
)
from compilewatch.runner.fleet.queue import conninfo_of, create_tables, open_app
from compilewatch.runner.plan.plan import Plan, builds_of, canary_specs, plan_spec
from compilewatch.runner.plan.trial_spec import Executor, Job, JobState
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


_CONNECT_TIMEOUT_S = 10.0
_STATES = {
    "todo": JobState.QUEUED,
    "doing": JobState.RUNNING,
    "succeeded": JobState.DONE,
    # A job fails only where its cancellation came while it was taken from a worker that had died.
    "failed": JobState.CANCELLED,
    "cancelled": JobState.CANCELLED,
    "aborted": JobState.CANCELLED,
}


class ProcrastinateExecutor:
    """Queues jobs for the workers of `queue`; of two with one priority the one queued first goes first.

    `database_url` is the address with its password; `stalled_s` after which silence a worker counts as dead.
    """

    def __init__(
        self,
        database: Database,
        database_url: str,
        *,
        queue: str,
        priority: int = 0,
        stalled_s: float = 30.0,
    ) -> None:
        self._database = database
        self._queue = queue
        self._priority = priority
        self._stalled_s = stalled_s
        conninfo = conninfo_of(database_url)
        with self._explained():
            create_tables(conninfo)
        self._connector = SyncPsycopgConnector(
            conninfo=conninfo, min_size=0, max_size=2, timeout=_CONNECT_TIMEOUT_S
        )
        self._app = open_app(self._connector)
        self._app.open()

    def submit(self, jobs: Iterable[Job]) -> None:
        wanted = {job.job_id: job for job in jobs}
        known = queued_jobs(self._database, wanted)
        while new := [job for job_id, job in wanted.items() if job_id not in known]:
            try:
                with self._explained():
                    self._app.job_manager.batch_defer_jobs([self._queued(job) for job in new])
            except AlreadyEnqueued:
                # Somebody else submits the same jobs: what is there by now is left alone.
                known = queued_jobs(self._database, wanted)
            else:
                return

    def cancel(self, job_ids: Collection[str]) -> None:
        cancel_jobs(self._database, job_ids)

    def status(self, job_ids: Collection[str]) -> Mapping[str, JobState]:
        jobs = queued_jobs(self._database, job_ids)
        return {job_id: _STATES[jobs[job_id].status] for job_id in job_ids if job_id in jobs}

    def trials(self, job_id: str) -> list[Trial]:
        try:
            return [trial_record(self._database, job_id)]
        except NotFoundError:
            return []

    def wait(self, timeout_s: float) -> None:
        time.sleep(timeout_s)

    def capacity(self) -> int:
        """Workers alive, of all machine types: the queue does not say which of them serves whom."""
        return live_workers(self._database, self._stalled_s)

    def close(self) -> None:
        """What is queued or running stays so: whoever asks for it again finds it."""
        self._app.close()

    def _queued(self, job: Job) -> QueueJob:
        return QueueJob(
            queue=self._queue,
            priority=self._priority,
            lock=lock_of_queue(self._queue),
            queueing_lock=job.job_id,
            task_name=TASK,
            task_kwargs={"message": message_of(job).model_dump(mode="json")},
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (ConnectorException, psycopg.Error) as error:
            if isinstance(error, AlreadyEnqueued):
                raise
            reason = str(error.__cause__ or error).partition("\n")[0]
            raise DatabaseError(
                f"The queue in {self._database.url} cannot be used: {reason}.",
                "Check that the server answers, and that the user may create tables.",
            ) from error
