"""Writes to the fleet's queue, whose tables Procrastinate keeps in the team's PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, bindparam, text

from db.engine.session import Database
from db.queries.fleet import queue_is_there

# Procrastinate's own function: what waits is cancelled, what runs is asked to end.
_CANCEL = (
    "SELECT count(procrastinate_cancel_job_v1(id, true, false)) FROM procrastinate_jobs"
    " WHERE status IN ('todo', 'doing') AND "
)


def cancel_jobs(db: Database, job_ids: Collection[str]) -> None:
    """Cancel jobs by the ids they were submitted under; those that are done or unknown are passed over."""
    statement = text(_CANCEL + "queueing_lock IN :ids").bindparams(bindparam("ids", expanding=True))
    with db.write() as connection:
        connection.execute(statement, {"ids": list(job_ids)})


def cancel_jobs_of_runs(connection: Connection, run_ids: Collection[str]) -> None:
    """Cancel all jobs of these runs inside the caller's transaction, where there is a queue at all."""
    if run_ids and queue_is_there(connection):
        of_runs = "args #>> '{message,run_id}' IN :ids"
        statement = text(_CANCEL + of_runs).bindparams(bindparam("ids", expanding=True))
        connection.execute(statement, {"ids": list(run_ids)})
