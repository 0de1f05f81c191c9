"""Reads of the fleet: its queue, whose tables Procrastinate keeps, its workers and their launches."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, bindparam, select, text

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.selection import read_records
from compilewatch.db.records.service.fleet import FleetWorker, Launch
from compilewatch.db.tables.trials import FLEET_LAUNCH, FLEET_WORKER, RUN, TRIAL


class QueuedJob(NamedTuple):
    """A job as Procrastinate has it: its number, and its status in its words."""

    number: int
    status: str


def has_queue(db: Database) -> bool:
    with db.read() as connection:
        return queue_is_there(connection)


def queue_is_there(connection: Connection) -> bool:
    """`has_queue` inside the caller's transaction."""
    if connection.dialect.name != "postgresql":
        return False
    return connection.scalar(text("SELECT to_regclass('procrastinate_jobs')")) is not None


def queued_jobs(db: Database, job_ids: Collection[str]) -> dict[str, QueuedJob]:
    """Jobs by the id they were submitted under, the newest of several; unknown ones are left out."""
    statement = text(
        "SELECT queueing_lock, id, status::text FROM procrastinate_jobs"
        " WHERE queueing_lock IN :ids ORDER BY id"
    ).bindparams(bindparam("ids", expanding=True))
    with db.read() as connection:
        rows = connection.execute(statement, {"ids": list(job_ids)})
        return {job_id: QueuedJob(number, status) for job_id, number, status in rows}


def queue_lengths(db: Database) -> dict[tuple[str, str], int]:
    """How many jobs wait or run, by queue and status (`todo`, `doing`)."""
    statement = text(
        "SELECT queue_name, status::text, count(*) FROM procrastinate_jobs"
        " WHERE status IN ('todo', 'doing') GROUP BY 1, 2"
    )
    return {(queue, status): count for queue, status, count in db.rows(statement)}


def live_workers(db: Database, within_s: float) -> int:
    """Workers that gave a sign of life within the last `within_s` seconds, by the server's clock."""
    statement = text(
        "SELECT count(*) FROM procrastinate_workers"
        " WHERE last_heartbeat > now() - make_interval(secs => :within_s)"
    )
    with db.read() as connection:
        return connection.scalar(statement, {"within_s": within_s}) or 0


def stored_trials(db: Database, trial_ids: Collection[str]) -> set[str]:
    return set(db.scalars(select(TRIAL.c.trial_id).where(TRIAL.c.trial_id.in_(trial_ids))))


def announced_runs(db: Database, run_ids: Collection[str]) -> set[str]:
    statement = select(RUN.c.run_id).where(RUN.c.run_id.in_(run_ids), RUN.c.started_at.is_not(None))
    return set(db.scalars(statement))


def fleet_workers(db: Database, limit: int = 100) -> list[FleetWorker]:
    """Workers as they last wrote of themselves, the one heard of last first."""
    statement = select(FLEET_WORKER).order_by(FLEET_WORKER.c.seen_at.desc(), FLEET_WORKER.c.owner)
    return read_records(db, FleetWorker, statement.limit(limit))


def launches(db: Database, limit: int = 20) -> list[Launch]:
    """Launches of all queues, newest first."""
    with db.read() as connection:
        return _launches(connection, select(FLEET_LAUNCH).limit(limit))


def launches_of(connection: Connection, queue: str) -> list[Launch]:
    """Launches for one queue, newest first, inside the caller's transaction."""
    return _launches(connection, select(FLEET_LAUNCH).where(FLEET_LAUNCH.c.queue == queue))


def _launches(connection: Connection, statement: Select[Any]) -> list[Launch]:
    newest_first = (FLEET_LAUNCH.c.launched_at.desc(), FLEET_LAUNCH.c.launch_id.desc())
    rows = connection.execute(statement.order_by(*newest_first)).mappings()
    return [Launch.model_validate(dict(row)) for row in rows]


def waiting_jobs(connection: Connection, queue: str, stalled_s: float) -> int:
    """How many jobs of `queue` wait: queued ones, and those of workers that were silent for `stalled_s`.

    Without a worker nobody gives the latter back.
    """
    if not queue_is_there(connection):
        return 0
    statement = text(
        "SELECT count(*) FROM procrastinate_jobs AS job"
        " LEFT JOIN procrastinate_workers AS worker ON worker.id = job.worker_id"
        " WHERE job.queue_name = :queue AND (job.status = 'todo' OR job.status = 'doing' AND ("
        "worker.id IS NULL OR worker.last_heartbeat < now() - make_interval(secs => :stalled_s)))"
    )
    return connection.scalar(statement, {"queue": queue, "stalled_s": stalled_s}) or 0


def workers_of(connection: Connection, queue: str, after: datetime) -> set[str]:
    """Owners of the workers for `queue` that have not stopped and were heard of `after`."""
    alive = (FLEET_WORKER.c.queue == queue) & FLEET_WORKER.c.stopped_at.is_(None)
    return set(connection.scalars(select(FLEET_WORKER.c.owner).where(alive, FLEET_WORKER.c.seen_at > after)))


def demand(db: Database, queue: str, stalled_s: float, alive_after: datetime) -> tuple[int, int]:
    with db.read() as connection:
        workers = workers_of(connection, queue, alive_after)
        return waiting_jobs(connection, queue, stalled_s), len(workers)
