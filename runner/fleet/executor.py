"""Has jobs measured by the workers of a fleet: `runner.process`, on Procrastinate's queue."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

import psycopg
from procrastinate import SyncPsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import Job as QueueJob

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import DatabaseError, NotFoundError
from compilewatch.db.queries.records import trial_record
from compilewatch.db.records.trial import Trial
from compilewatch.db.service.fleet import cancel_jobs, live_workers, queued_jobs
from compilewatch.runner.fleet.message import message_of
from compilewatch.runner.fleet.names import TASK, lock_of_queue
from compilewatch.runner.fleet.queue import conninfo_of, create_tables, open_app
from compilewatch.runner.plan.jobs import Job, JobState

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
