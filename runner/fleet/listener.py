"""The worker: takes jobs of its queues one at a time and has each measured in a thread; hourly it stores what
waits, sees upgrades and deletes old traces.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import signal
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from threading import Event
from typing import Any, NoReturn

import psycopg
from procrastinate import App, BaseRetryStrategy, JobContext, RetryDecision
from procrastinate.exceptions import AppNotOpen, ConnectorException, JobAborted
from procrastinate.job_context import AbortReason
from procrastinate.jobs import Job as QueueJob

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.device.lock import DeviceBusyError, default_lock_dir, device_lock
from compilewatch.runner.fleet.host_watch import SAVE_INTERVAL_S, HostWatch, WorkerPlace
from compilewatch.runner.fleet.measurer import Equipment, Measurement, in_thread
from compilewatch.runner.fleet.names import LONGEST_WAIT_S, TASK, queue_of_host, queues_of_worker
from compilewatch.runner.fleet.queue import (
    HAS_WAITING,
    NO_ATTEMPT,
    PatientConnector,
    conninfo_of,
    create_tables,
    open_app,
    reason_of,
)
from compilewatch.runner.plan.cancellation import PreparationCancelledError, cancellable
from compilewatch.runner.process.spool import Spool, store_waiting
from compilewatch.runner.process.trace import forget_traces
from compilewatch.runner.service.upkeep import request_where_changed

_LOG = logging.getLogger("compilewatch.fleet")
PERIOD_S = 3600.0
_LONGEST_S = 300.0


def do_chores(settings: Settings, database: Database, *, host: str, owner: str, now: datetime) -> None:
    """Raises DatabaseError; what was done until then stays."""
    store_waiting(database, Spool(settings.data_dir / "spool"))
    if settings.service.watch_builds:
        request_where_changed(database, settings, host=host, machine=queue_of_host(host), owner=owner, at=now)
    forget_traces(settings.data_dir, settings.service.keep_traces_days, now)


class Chores:
    """`if_due` does `work` in a thread: first `first_s` after the start, then hourly.

    Not at once, so that a worker that has just come begins a trial first, and one that is started again and
    again measures all the same.
    """

    def __init__(
        self,
        work: Callable[[], None],
        *,
        first_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._work = work
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
            cancelled = Event()
            try:
                working = in_thread(lambda: self._do(cancelled.is_set), "hourly work")
                _, late = await asyncio.wait({working}, timeout=_LONGEST_S)
                if late:
                    _LOG.warning("The hourly work took longer than %.0f s and is given up.", _LONGEST_S)
            except asyncio.CancelledError:
                self._due = self._monotonic() + self._retry_s
                raise
            finally:
                cancelled.set()

    def _do(self, is_cancelled: Callable[[], bool]) -> None:
        try:
            with cancellable(is_cancelled):
                self._work()
        except PreparationCancelledError:
            return
        except CompilewatchError as error:
            _LOG.warning("The hourly work of this host was not done: %s", error)
        except Exception:  # noqa: BLE001
            _LOG.exception("The hourly work of this host was not done.")


_REAP_EVERY_S = 5.0
_PAUSE_S = 5.0
_LAST_OUTPUT_S = 8.0
_END_WITHIN_S = 15.0
_LOOK_EVERY_S = 1.0
_RETENTION_H = 7 * 24
_UNLISTED_AFTER_S = 600.0
"""Longer than most outages: a worker that the queue does not list any more must begin anew to be given jobs.
Its trial goes back much sooner.
"""


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
    """One worker: `run` until `stop`, or until it had no trial for `exit_when_idle_s` or `max_trials`."""

    def __init__(
        self,
        settings: Settings,
        place: WorkerPlace,
        *,
        exit_when_idle_s: float | None = None,
        max_trials: int | None = None,
    ) -> None:
        self._settings = settings
        self._place = place
        self._exit_when_idle_s = exit_when_idle_s
        self._max_trials = max_trials
        self._queues = queues_of_worker(place.queue, place.host, place.gpu)
        self._conninfo = conninfo_of(settings.database_url)
        self._connector = PatientConnector(self._conninfo)
        self._app: App = open_app(self._connector)
        self._app.task(name=TASK, pass_context=True, retry=TryAgain())(self._measure)
        self._host = HostWatch(place, self._connector)
        self._chores = Chores(self._do_chores, first_s=settings.fleet.idle_s)
        # Its file may have been edited since, and its address may have been an option of the command.
        self._read_settings = functools.partial(
            load_settings, settings.config_file, options={"database_url": settings.database_url}
        )
        self._equipment = Equipment(self._read_settings)
        self._putting_away: asyncio.TimerHandle | None = None
        self._measurement: Measurement | None = None
        self._stopping = asyncio.Event()
        self._held: set[int] = set()
        self._forgotten: set[int] = set()
        self._worker_id: int | None = None
        self._measured = 0
        self._idle_since = time.monotonic()

    def stop(self) -> None:
        """End the job that runs, give it back to the queue, and end."""
        self._stopping.set()
        if self._measurement is not None:
            # At once: what is measured may have had the same signal, and its end is no result then.
            self._measurement.drop()

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
        self._equipment.put_away()

    async def _stop_when_idle(self) -> None:
        """Stop once there was nothing to measure for `exit_when_idle_s`, also where the database is away."""
        longest_s = self._exit_when_idle_s
        while longest_s is not None:
            idle_s = 0.0 if self._held else time.monotonic() - self._idle_since
            if idle_s >= longest_s and not await self._has_waiting():
                _LOG.info("Nothing to measure for %.0f s.", idle_s)
                self.stop()
                return
            await asyncio.sleep(max(longest_s - idle_s, _LOOK_EVERY_S))

    async def _has_waiting(self) -> bool:
        """Whether a trial of our queues waits; a queue that does not answer at once has none."""
        with contextlib.suppress(ConnectorException, AppNotOpen, TimeoutError):
            row = await asyncio.wait_for(
                self._connector.execute_query_one_async(HAS_WAITING, queues=self._queues), _PAUSE_S
            )
            return bool(row["has_waiting"])
        return False

    async def _connect_and_work(self) -> None:
        await asyncio.to_thread(create_tables, self._conninfo)
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
        fleet = self._settings.fleet
        _LOG.info("Waiting for trials of %s.", ", ".join(self._queues))
        return self._app.run_worker_async(
            queues=self._queues,
            concurrency=1,
            install_signal_handlers=False,
            shutdown_graceful_timeout=0,
            update_heartbeat_interval=fleet.heartbeat_s,
            stalled_worker_timeout=_UNLISTED_AFTER_S + fleet.stalled_s,
            delete_jobs="never",
        )

    async def _measure(self, context: JobContext, message: dict[str, Any]) -> None:
        """The task: returns once the trial is recorded. Raises AgainError or JobAborted."""
        job = context.job
        assert job.id is not None
        self._held.add(job.id)
        self._worker_id = job.worker_id
        if self._putting_away is not None:
            self._putting_away.cancel()
        measurement = Measurement(self._equipment, self._place.device, message, job.attempts)
        self._measurement = measurement
        try:
            # What is due between measurements would never be done where trials follow each other all day.
            await self._chores.if_due()
            measurement.start()
            await measurement.wait()
            if measurement.is_dropped:
                # By `stop`: the queue's library cancels this task next.
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            await self._end(measurement, context)
        finally:
            self._measurement = None
            self._connector.errors += measurement.database_errors
            self._held.discard(job.id)
            self._idle_since = time.monotonic()
            self._putting_away = asyncio.get_running_loop().call_later(
                self._settings.fleet.idle_s, self._equipment.put_away
            )
        try:
            measurement.is_stored()
        except CompilewatchError as error:
            _LOG.warning("Not measured: %s", error, extra={"trial_id": job.queueing_lock})
            raise AgainError(str(error), _PAUSE_S) from error
        except Exception as error:
            _LOG.exception("The trial goes back to the queue.", extra={"trial_id": job.queueing_lock})
            raise AgainError(str(error)) from error
        _LOG.info("Measured.", extra={"trial_id": job.queueing_lock})
        self._measured += 1
        if self._measured == self._max_trials:
            _LOG.info("Measured as many trials as this worker may.")
            # How this job ended is written before the worker ends: the queue's library sees to that.
            self.stop()

    async def _end(self, measurement: Measurement, context: JobContext) -> NoReturn:
        """End a job whose task was cancelled. Its thread ends within 15 s, or with this process."""
        job = context.job
        is_cancelled = context.abort_reason() is AbortReason.USER_REQUEST
        if is_cancelled:
            measurement.cancel()
            # A stop of the worker ends this wait for a database that is away.
            with contextlib.suppress(asyncio.CancelledError):
                await measurement.wait()
        measurement.drop()
        await measurement.wait(_END_WITHIN_S)
        if is_cancelled:
            _LOG.info("The trial was cancelled.", extra={"trial_id": job.queueing_lock})
            raise JobAborted from None
        await self._note_stop(job)
        raise AgainError("the worker was stopped") from None

    def _do_chores(self) -> None:
        # The hour is long, so its builds may be others than those of the trials before.
        settings, place, database = self._read_settings(), self._place, self._equipment.database
        try:
            do_chores(settings, database, host=place.host, owner=place.owner, now=datetime.now(UTC))
        finally:
            database.close()

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
            await asyncio.sleep(self._settings.fleet.heartbeat_s)

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
        if self._connector.back_for_s() < LONGEST_WAIT_S + self._settings.fleet.stalled_s:
            return
        manager = self._app.job_manager
        stalled = await manager.get_stalled_jobs(
            task_name=TASK, seconds_since_heartbeat=self._settings.fleet.stalled_s
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


def serve(
    settings: Settings, place: WorkerPlace, *, exit_when_idle_s: float | None, max_trials: int | None
) -> None:
    """Serve one GPU until SIGTERM or Ctrl-C, or as a `Listener` ends by itself.

    Raises DeviceBusyError where another worker serves it.
    """

    async def listen() -> None:
        listener = Listener(settings, place, exit_when_idle_s=exit_when_idle_s, max_trials=max_trials)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(log_loop_error)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, listener.stop)
        await listener.run()

    served = place.gpu or place.device
    busy = DeviceBusyError(
        f"Another worker serves {served} on this host.", "Stop it first, or name another GPU with --gpu."
    )
    with device_lock(f"worker-{served}", default_lock_dir(), wait_s=0, busy=busy):
        asyncio.run(listen())
    _LOG.info("Stopped.")
