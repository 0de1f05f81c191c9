"""Reads of the fleet's queue, whose tables Procrastinate keeps in the team's PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select, text

from db.engine.session import Database
from db.tables.trials import RUN, TRIAL


class QueuedJob(NamedTuple):
    """A job as Procrastinate has it: its number, and its status in its words."""

    number: int
    status: str


def has_queue(db: Database) -> bool:
    """Whether the queue's tables are there."""
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
    with db.read() as connection:
        return {(queue, status): count for queue, status, count in connection.execute(statement)}


def live_workers(db: Database, within_s: float) -> int:
    """Workers that gave a sign of life within the last `within_s` seconds, by the server's clock."""
    statement = text(
        "SELECT count(*) FROM procrastinate_workers"
        " WHERE last_heartbeat > now() - make_interval(secs => :within_s)"
    )
    with db.read() as connection:
        return connection.scalar(statement, {"within_s": within_s}) or 0


def stored_trials(db: Database, trial_ids: Collection[str]) -> set[str]:
    """Those of these trials that are in the database."""
    with db.read() as connection:
        return set(connection.scalars(select(TRIAL.c.trial_id).where(TRIAL.c.trial_id.in_(trial_ids))))


def announced_runs(db: Database, run_ids: Collection[str]) -> set[str]:
    """Those of these runs that were announced."""
    statement = select(RUN.c.run_id).where(RUN.c.run_id.in_(run_ids), RUN.c.started_at.is_not(None))
    with db.read() as connection:
        return set(connection.scalars(statement))
