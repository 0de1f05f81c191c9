"""The fleet: its queue, whose tables Procrastinate keeps, its workers and their launches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, bindparam, delete, insert, select, text, update

from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import FLEET_LAUNCH, FLEET_WORKER, RUN, TRIAL
from compilewatch.db.queries.selection import read_records
from compilewatch.db.records.hosts import (
    ON_THEIR_WAY,
    OUTPUT_CHARACTERS,
    STORED_LAUNCHES,
    FleetWorker,
    Launch,
)


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
"""Whether to launch, by the trials that wait, the workers that live, and the launches so far, newest first.

A job at the scheduler that no launch brought counts as a worker.
"""

_JUST_LAUNCHED = timedelta(seconds=5)
"""A job launched so shortly before the listing may be missing there; clocks of services differ as well."""


class ListedJobs(NamedTuple):
    """How many jobs wait or run at the scheduler; a worker of one that waits is due until `due_at`."""

    number: int
    listed_at: datetime
    due_at: datetime


def claim_launch(
    db: Database,
    launch: Launch,
    is_due: IsDue,
    *,
    stalled_s: float,
    alive_after: datetime,
    jobs: ListedJobs | None = None,
) -> bool:
    """Store that `launch` begins if it `is_due`: False where it is not. Of services, one decides at a time.

    A worker lives that was heard of after `alive_after`. Launches so far are judged by `jobs` where given.
    """
    with db.write() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LAUNCH_LOCK})
        so_far = launches_of(connection, launch.queue)
        waiting = waiting_jobs(connection, launch.queue, stalled_s)
        workers, unlaunched = workers_of(connection, launch.queue, alive_after), 0
        if jobs is not None:
            before, (so_far, unlaunched) = so_far, matched(so_far, workers, jobs)
            _save_due(connection, before, so_far)
        if not is_due(waiting, len(workers) + unlaunched, so_far):
            return False
        old = [each.launch_id for each in outdated(so_far, launch.launched_at)]
        connection.execute(delete(FLEET_LAUNCH).where(FLEET_LAUNCH.c.launch_id.in_(old)))
        connection.execute(insert(FLEET_LAUNCH).values(launch.model_dump()))
        return True


def matched(
    launches: Sequence[Launch], workers: Collection[str], jobs: ListedJobs
) -> tuple[list[Launch], int]:
    """`launches`, newest first, by the jobs at the scheduler; and how many jobs came of none of them.

    A job is that of a living worker, or one whose worker may still come: of the newest launch on its way.
    Where jobs are fewer than such launches, the oldest launches are over: their jobs have ended.
    """

    def is_listable(launch: Launch) -> bool:
        return launch.ended_at is not None and launch.ended_at <= jobs.listed_at - _JUST_LAUNCHED

    on_their_way = [each for each in launches if each.state(jobs.listed_at) in ON_THEIR_WAY]
    listable = [each for each in on_their_way if is_listable(each)]
    of_workers = sum(each.worker in workers and is_listable(each) for each in launches)
    left = max(0, jobs.number - of_workers)
    # Seldom, for a worker that comes passes over the row of a launch while it is written.
    half_way = jobs.listed_at + (jobs.due_at - jobs.listed_at) / 2
    due = {each.launch_id: jobs.due_at for each in listable[:left] if each.worker_due_at < half_way}
    due |= {each.launch_id: jobs.listed_at for each in listable[left:]}
    changed = [
        each.model_copy(update={"worker_due_at": due.get(each.launch_id, each.worker_due_at)})
        for each in launches
    ]
    return changed, max(0, left - len(on_their_way))


def _save_due(connection: Connection, before: Sequence[Launch], after: Sequence[Launch]) -> None:
    for old, new in zip(before, after, strict=True):
        if old.worker_due_at != new.worker_due_at:
            of_launch = update(FLEET_LAUNCH).where(FLEET_LAUNCH.c.launch_id == new.launch_id)
            connection.execute(of_launch.values(worker_due_at=new.worker_due_at))


def outdated(launches: Sequence[Launch], now: datetime) -> list[Launch]:
    """Those of a queue that are forgotten before the next one, of `launches`, newest first.

    One whose worker may still come stays, however many there are: it counts.
    """
    return [each for each in launches[STORED_LAUNCHES - 1 :] if each.state(now) not in ON_THEIR_WAY]


def end_launch(db: Database, launch_id: str, *, at: datetime, exit_code: int | None, output: str) -> None:
    """Store how the command of a launch ended; of its output the last part."""
    ended = update(FLEET_LAUNCH).where(FLEET_LAUNCH.c.launch_id == launch_id)
    with db.write() as connection:
        connection.execute(ended.values(ended_at=at, exit_code=exit_code, output=output[-OUTPUT_CHARACTERS:]))
