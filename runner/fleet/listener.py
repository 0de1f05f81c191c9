"""The waiting worker: takes jobs of its queues one at a time and has them measured by the process beside it.

    python -m runner.fleet.listener DESCRIPTOR

It is small because it does nothing but wait: no pydantic, no SQLAlchemy. `compilewatch worker` reads the
configuration, writes what is needed as JSON into a pipe, and becomes this program.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from procrastinate import App, BaseRetryStrategy, JobContext, RetryDecision
from procrastinate.exceptions import AppNotOpen, ConnectorException, JobAborted
from procrastinate.job_context import AbortReason
from procrastinate.jobs import Job as QueueJob

from runner.device.lock import DeviceBusyError, device_lock
from runner.fleet.companion import Companion, CompanionDiedError
from runner.fleet.host_watch import SAVE_INTERVAL_S, HostWatch, WorkerPlace
from runner.fleet.names import LONGEST_WAIT_S, TASK
from runner.fleet.queue import HAS_WAITING, NO_ATTEMPT, PatientConnector, create_tables, open_app, reason_of
from runner.service.logs import LogFormat, log_to_standard_error

# The hourly work of a worker's host: when it is due, and the process that does it.

_LOG = logging.getLogger("compilewatch.fleet")
PERIOD_S = 3600.0
_LONGEST_S = 300.0

PROGRAM = (sys.executable, "-m", "runner.fleet.upkeep")


class Chores:
    """`if_due` runs `runner.fleet.upkeep`: first `first_s` after the start, then hourly.

    Not at once, so that a worker that has just come begins a trial first, and one that is started again and
    again measures all the same.
    """

    def __init__(
        self,
        config: str,
        *,
        first_s: float,
        program: Sequence[str] = PROGRAM,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command = [*program, str(os.getpid()), config]
        self._monotonic = monotonic
        self._retry_s = first_s
        self._due = monotonic() + first_s
        self._lock = asyncio.Lock()

    def due_in_s(self) -> float:
        """Seconds until it is due; 0 where it is."""
        return max(0.0, self._due - self._monotonic())

    async def if_due(self) -> None:
        """Have it done and wait for it, five minutes at most; cancelled, it ends and is due again soon."""
        async with self._lock:
            if self.due_in_s() > 0:
                return
            self._due = self._monotonic() + PERIOD_S
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, process_group=0
            )
            try:
                await asyncio.wait_for(process.wait(), _LONGEST_S)
            except TimeoutError:
                _LOG.warning("The hourly work took longer than %.0f s and was ended.", _LONGEST_S)
            except asyncio.CancelledError:
                self._due = self._monotonic() + self._retry_s
                raise
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()


_REAP_EVERY_S = 5.0
_PAUSE_S = 5.0
_LAST_OUTPUT_S = 8.0
_LOOK_EVERY_S = 1.0
_RETENTION_H = 7 * 24
_UNLISTED_AFTER_S = 600.0
"""Longer than most outages: a worker that the queue does not list any more must begin anew to be given jobs.
Its trial goes back much sooner.
"""


@dataclass(frozen=True)
class WorkerSettings:
    """What the waiting worker is told. `gpu` is a UUID, None for the CPU; `conninfo` may hold a password.

    It ends by itself after `exit_when_idle_s` without a trial, or after `max_trials`; None is never.
    """

    conninfo: str
    queues: list[str]
    place: WorkerPlace
    gpu: str | None
    config: str
    lock_dir: str
    heartbeat_s: float
    stalled_s: float
    idle_s: float
    log_format: LogFormat
    exit_when_idle_s: float | None = None
    max_trials: int | None = None

    def to_json(self) -> bytes:
        """As `compilewatch worker` writes it into the pipe."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, content: bytes) -> WorkerSettings:
        """What `to_json` wrote."""
        values = json.loads(content)
        return cls(**values | {"place": WorkerPlace(**values["place"])})


class AgainError(Exception):
    """The job was not measured and goes back to the queue, to be begun again after `pause_s`."""

    def __init__(self, why: str, pause_s: float = 0.0) -> None:
        super().__init__(why)
        self.pause_s = pause_s


class TryAgain(BaseRetryStrategy):
    """Only for what is no result: a trial that failed is one, and is never measured again."""

    def get_retry_decision(self, *, exception: BaseException, job: QueueJob) -> RetryDecision | None:  # noqa: ARG002
        if isinstance(exception, AgainError):
            return RetryDecision(retry_in={"seconds": int(exception.pause_s)})
        return None


class Listener:
    """One worker: `run` until `stop`."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._connector = PatientConnector(settings.conninfo)
        self._app: App = open_app(self._connector)
        self._app.task(name=TASK, pass_context=True, retry=TryAgain())(self._measure)
        self._companion = Companion(settings.place.device, settings.config, idle_s=settings.idle_s)
        self._host = HostWatch(settings.place, self._connector)
        self._chores = Chores(settings.config, first_s=settings.idle_s)
        self._stopping = asyncio.Event()
        self._held: set[int] = set()
        self._forgotten: set[int] = set()
        self._worker_id: int | None = None
        self._measured = 0
        self._idle_since = time.monotonic()

    def stop(self) -> None:
        """End the job that runs, give it back to the queue, and end."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until `stop`; a queue that cannot be used is tried again."""
        idleness = asyncio.create_task(self._stop_when_idle())
        while not self._stopping.is_set():
            try:
                await self._connect_and_work()
            except (ConnectorException, psycopg.Error) as error:
                _LOG.warning("The queue cannot be used (%s). Trying again.", reason_of(error))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), _PAUSE_S)
        idleness.cancel()
        await self._companion.drop()

    async def _stop_when_idle(self) -> None:
        """Stop once there was nothing to measure for `exit_when_idle_s`, also where the database is away."""
        longest_s = self._settings.exit_when_idle_s
        while longest_s is not None:
            idle_s = 0.0 if self._held else time.monotonic() - self._idle_since
            if idle_s >= longest_s and not await self._has_waiting():
                _LOG.info("Nothing to measure for %.0f s.", idle_s)
                self.stop()
                return
            await asyncio.sleep(max(longest_s - idle_s, _LOOK_EVERY_S))

    async def _has_waiting(self) -> bool:
        """Whether a trial of our queues waits; a queue that does not answer at once has none."""
        queues = self._settings.queues
        with contextlib.suppress(ConnectorException, AppNotOpen, TimeoutError):
            row = await asyncio.wait_for(
                self._connector.execute_query_one_async(HAS_WAITING, queues=queues), _PAUSE_S
            )
            return bool(row["has_waiting"])
        return False

    async def _connect_and_work(self) -> None:
        await asyncio.to_thread(create_tables, self._settings.conninfo)
        async with self._app.open_async():
            worker = asyncio.create_task(self._work())
            reaper = asyncio.create_task(self._reap())
            caretaker = asyncio.create_task(self._tend_host())
            heart = asyncio.create_task(self._beat())
            stopping = asyncio.create_task(self._stopping.wait())
            try:
                await asyncio.wait({worker, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if not worker.done():
                    asyncio.get_running_loop().call_later(_LAST_OUTPUT_S, self._connector.give_up)
                    worker.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await worker
                with contextlib.suppress(ConnectorException):
                    await self._host.stopped(self._measured)
            finally:
                for task in (reaper, caretaker, heart, stopping):
                    task.cancel()

    def _work(self) -> Coroutine[Any, Any, None]:
        settings = self._settings
        _LOG.info("Waiting for trials of %s.", ", ".join(settings.queues))
        return self._app.run_worker_async(
            queues=settings.queues,
            concurrency=1,
            install_signal_handlers=False,
            shutdown_graceful_timeout=0,
            update_heartbeat_interval=settings.heartbeat_s,
            stalled_worker_timeout=_UNLISTED_AFTER_S + settings.stalled_s,
            delete_jobs="never",
        )

    async def _measure(self, context: JobContext, message: dict[str, Any]) -> None:
        """The task: returns once the trial is recorded. Raises AgainError or JobAborted."""
        job = context.job
        assert job.id is not None
        self._held.add(job.id)
        self._worker_id = job.worker_id
        try:
            # What is due between measurements would never be done where trials follow each other all day.
            await self._chores.if_due()
            answer = await self._companion.measure(message, job.attempts)
        except asyncio.CancelledError:
            if context.abort_reason() is not AbortReason.USER_REQUEST:
                await asyncio.shield(self._companion.drop())
                await asyncio.shield(self._note_stop(job))
                raise AgainError("the worker was stopped") from None
            await asyncio.shield(self._companion.cancel())
            _LOG.info("The trial was cancelled.", extra={"trial_id": job.queueing_lock})
            raise JobAborted from None
        except CompanionDiedError as error:
            _LOG.warning("%s The trial goes back to the queue.", error, extra={"trial_id": job.queueing_lock})
            raise AgainError(str(error)) from error
        finally:
            self._held.discard(job.id)
            self._idle_since = time.monotonic()
        self._connector.errors += answer["database_errors"]
        if answer["ended"] == "failed":
            _LOG.warning("Not measured: %s", answer["why"], extra={"trial_id": job.queueing_lock})
            raise AgainError(answer["why"], _PAUSE_S)
        if answer["ended"] == "dropped":
            await self._note_stop(job)
            raise AgainError("the measuring process was stopped", _PAUSE_S)
        _LOG.info("Measured.", extra={"trial_id": job.queueing_lock})
        self._measured += 1
        if self._measured == self._settings.max_trials:
            _LOG.info("Measured as many trials as this worker may.")
            # How this job ended is written before the worker ends: the queue's library sees to that.
            self.stop()

    async def _note_stop(self, job: QueueJob) -> None:
        """A trial that went back in order has not failed: a node may be taken back any number of times."""
        _LOG.info("The trial goes back to the queue.", extra={"trial_id": job.queueing_lock})
        with contextlib.suppress(ConnectorException):
            await self._connector.execute_query_async(NO_ATTEMPT, job_id=job.id)

    async def _tend_host(self) -> None:
        while True:
            await self._host.save(idle=not self._held)
            if not self._held:
                await self._chores.if_due()
            await asyncio.sleep(min(SAVE_INTERVAL_S, self._chores.due_in_s()))

    async def _beat(self) -> None:
        """Write that this worker lives as often as the queue is told."""
        while True:
            await self._host.save_worker(self._measured)
            await asyncio.sleep(self._settings.heartbeat_s)

    async def _reap(self) -> None:
        """Give back the jobs of silent workers, and forget old jobs."""
        while True:
            await asyncio.sleep(_REAP_EVERY_S)
            try:
                await self._reap_once()
            except ConnectorException as error:
                # Without it a lost trial is never begun again, so one refusal must not end it.
                _LOG.warning("The queue cannot be read (%s). Trying again.", reason_of(error))

    async def _reap_once(self) -> None:
        # After an outage everybody was silent; who measured meanwhile is back within the longest wait.
        if self._connector.back_for_s() < LONGEST_WAIT_S + self._settings.stalled_s:
            return
        manager = self._app.job_manager
        stalled = await manager.get_stalled_jobs(
            task_name=TASK, seconds_since_heartbeat=self._settings.stalled_s
        )
        for job in (*stalled, *await self._lost_jobs()):
            if job.id not in self._held:
                await self._give_back(job)
        await manager.delete_old_jobs(
            nb_hours=_RETENTION_H, include_failed=True, include_cancelled=True, include_aborted=True
        )

    async def _lost_jobs(self) -> list[QueueJob]:
        """Jobs that are ours in the queue and not here: the answer that brought them was lost on its way.

        Twice in a row, since one that has just come or is just ending looks the same.
        """
        if self._worker_id is None:
            return []
        ours = await self._app.job_manager.list_jobs_async(
            task=TASK, status="doing", worker_id=self._worker_id
        )
        absent = {job.id: job for job in ours if job.id is not None and job.id not in self._held}
        twice = [job for number, job in absent.items() if number in self._forgotten]
        self._forgotten = set(absent)
        return twice

    async def _give_back(self, job: QueueJob) -> None:
        # Another worker may be quicker, or the one that was silent has ended the job after all.
        with contextlib.suppress(ConnectorException):
            await self._app.job_manager.retry_job(job)
            _LOG.warning(
                "A worker sends no heartbeat any more; its trial goes back to the queue.",
                extra={"trial_id": job.queueing_lock},
            )


def log_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What the queue refuses where nobody waits for the answer, as when another worker has ended the job."""
    error = context.get("exception")
    if isinstance(error, ConnectorException):
        _LOG.warning("The queue did not take how a job ended (%s).", reason_of(error))
    else:
        loop.default_exception_handler(context)


async def _serve(settings: WorkerSettings) -> None:
    listener = Listener(settings)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_loop_error)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, listener.stop)
    await listener.run()


def main(descriptor: str) -> int:
    """Serve one GPU until SIGTERM or Ctrl-C. `descriptor`: the pipe that holds a `WorkerSettings` as JSON.

    The exit code is 2 where another worker serves that GPU.
    """
    with os.fdopen(int(descriptor), "rb") as pipe:
        settings = WorkerSettings.from_json(pipe.read())
    log_to_standard_error(settings.log_format)
    served = settings.gpu or settings.place.device
    busy = DeviceBusyError(
        f"Another worker serves {served} on this host.", "Stop it first, or name another GPU with --gpu."
    )
    try:
        with device_lock(f"worker-{served}", Path(settings.lock_dir), wait_s=0, busy=busy):
            asyncio.run(_serve(settings))
    except DeviceBusyError as error:
        sys.stderr.write(f"compilewatch: {error.message}\n  {error.next_step}\n")
        return error.exit_code
    _LOG.info("Stopped.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
