"""Whether anything was written since the last look."""

from __future__ import annotations

from sqlalchemy import func, select

from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import DATA_VERSION, HOST, JOB_STATE, RUN_REQUEST, SCHEDULE
from compilewatch.db.errors import DatabaseError
from compilewatch.db.records.requests import UNFINISHED


def data_version(db: Database) -> int:
    """A number that grows with every write, in the transaction of that write. Raises DatabaseError where
    somebody wrote something else in its place.
    """
    (version,) = db.scalars(select(DATA_VERSION.c.version))
    if not isinstance(version, int):
        raise DatabaseError(
            "The database is damaged. version of 1 row of data_version cannot be read.",
            "See `compilewatch db check`.",
        )
    return version


# Whether anything changed that the data version does not count: queue, hosts, running jobs.
#
# Each answer is small, is equal as long as nothing changed, and is meant to be asked for every few seconds.


def service_pulse(db: Database) -> object:
    """Of the queue, the schedules, the hosts and running jobs; that a host lives counts once a minute."""
    pulses = (
        select(RUN_REQUEST.c.request_id, RUN_REQUEST.c.state, RUN_REQUEST.c.cancel_asked, RUN_REQUEST.c.owner)
        .where(RUN_REQUEST.c.state.in_(UNFINISHED))
        .order_by(RUN_REQUEST.c.request_id)
    )
    planned = select(SCHEDULE.c.name, SCHEDULE.c.paused, SCHEDULE.c.next_run_at).order_by(SCHEDULE.c.name)
    living = select(HOST.c.name, HOST.c.owner, HOST.c.stopped_at, HOST.c.seen_at).order_by(HOST.c.name)
    of_jobs = select(
        JOB_STATE.c.process, JOB_STATE.c.ended, JOB_STATE.c.compiling, JOB_STATE.c.compiles_after_ready
    )
    with db.read() as connection:
        jobs = [tuple(row) for row in connection.execute(of_jobs.order_by(JOB_STATE.c.process))]
        hosts = [
            (row.name, row.owner, row.stopped_at, row.seen_at.replace(second=0, microsecond=0))
            for row in connection.execute(living)
        ]
        requests, schedules = (
            [tuple(row) for row in connection.execute(statement)] for statement in (pulses, planned)
        )
        ever = connection.scalar(select(func.count()).select_from(RUN_REQUEST))
    return ever, requests, schedules, hosts, jobs
