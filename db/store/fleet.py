"""Writes of the fleet: cancelled jobs of its queue, whose tables Procrastinate keeps, and launches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, insert, text, update

from db.engine.session import Database
from db.queries.fleet import launches_of, queue_is_there, waiting_jobs, workers_of
from db.records.fleet import OUTPUT_CHARACTERS, STORED_LAUNCHES, Launch, LaunchState
from db.tables.service import FLEET_LAUNCH

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


_LAUNCH_LOCK = 4_022_250_975
"""Any number, the same everywhere: services decide on launches one after the other."""

IsDue = Callable[[int, int, Sequence[Launch]], bool]
"""Whether to launch, by the jobs that wait, the workers that live, and the launches so far, newest first."""


def claim_launch(
    db: Database, launch: Launch, is_due: IsDue, *, stalled_s: float, alive_after: datetime
) -> bool:
    """Store that `launch` begins if it `is_due`: False where it is not. Of services, one decides at a time.

    A worker lives that was heard of after `alive_after`.
    """
    with db.write() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LAUNCH_LOCK})
        so_far = launches_of(connection, launch.queue)
        waiting = waiting_jobs(connection, launch.queue, stalled_s)
        if not is_due(waiting, workers_of(connection, launch.queue, alive_after), so_far):
            return False
        old = [each.launch_id for each in outdated(so_far, launch.launched_at)]
        connection.execute(delete(FLEET_LAUNCH).where(FLEET_LAUNCH.c.launch_id.in_(old)))
        connection.execute(insert(FLEET_LAUNCH).values(launch.model_dump()))
        return True


def outdated(launches: Sequence[Launch], now: datetime) -> list[Launch]:
    """Those of a queue that are forgotten before the next one, of `launches`, newest first.

    One whose worker may still come stays, however many there are: it counts.
    """
    return [
        each
        for each in launches[STORED_LAUNCHES - 1 :]
        if each.state(now) not in (LaunchState.RUNNING, LaunchState.PENDING)
    ]


def end_launch(db: Database, launch_id: str, *, at: datetime, exit_code: int | None, output: str) -> None:
    """Store how the command of a launch ended; of its output the last part."""
    ended = update(FLEET_LAUNCH).where(FLEET_LAUNCH.c.launch_id == launch_id)
    with db.write() as connection:
        connection.execute(ended.values(ended_at=at, exit_code=exit_code, output=output[-OUTPUT_CHARACTERS:]))
