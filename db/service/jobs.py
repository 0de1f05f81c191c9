"""Running jobs, as their processes describe them, and who is told of what they compile."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import delete, func, select, update

from compilewatch.db.engine.repository import Repository, lock_data_version, upsert
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import JOB_STATE
from compilewatch.db.records.hosts import JobReport, JobState

JOB_STATES = Repository(JobState, JOB_STATE, order=(JOB_STATE.c.job, JOB_STATE.c.host, JOB_STATE.c.rank))
FORGET_AFTER = timedelta(days=7)
SHOWN_FOR = timedelta(hours=1)
"""Pages and metrics have those heard of since then."""
SETTLES_AFTER = timedelta(minutes=1)
"""So long a first compilation waits for those of other hosts before people are told."""
TOLD_EVERY = timedelta(hours=1)


def save_report(db: Database, report: JobReport, at: datetime) -> bool:
    """Put down what a process says of itself at `at`; False for a report older than the one stored."""

    def ago(ns: int | None) -> datetime | None:
        return None if ns is None else at - timedelta(microseconds=min(ns, _LONGEST_NS) // 1_000)

    compiled_at = at if report.compiles_after_ready else None
    state = JobState(
        **report.model_dump(),
        seen_at=at,
        compiling_since=ago(report.compiling_ns),
        stepped_at=ago(report.since_step_ns),
        compiled_at=compiled_at,
    )
    row = state.model_dump() | {"events": state.model_dump(mode="json")["events"]}
    with db.write() as connection:
        connection.execute(delete(JOB_STATE).where(JOB_STATE.c.seen_at < at - FORGET_AFTER))
        statement = upsert(connection, JOB_STATE).values(**row)
        new = {name: value for name, value in row.items() if name not in ("told_at", "compiled_at")}
        if compiled_at is not None:
            new["compiled_at"] = func.coalesce(JOB_STATE.c.compiled_at, compiled_at)
        older = JOB_STATE.c.sequence < report.sequence
        saved = statement.on_conflict_do_update(index_elements=["process"], set_=new, where=older)
        return connection.scalar(saved.returning(JOB_STATE.c.process)) is not None


_LONGEST_NS = 10**18


def shown_jobs(db: Database, now: datetime) -> list[JobState]:
    """The processes that were heard of lately, by job, host and rank."""
    return JOB_STATES.all(db, JOB_STATE.c.seen_at >= now - SHOWN_FOR)


def claim_compiled(db: Database, now: datetime) -> list[list[JobState]]:
    """Of each job of which the caller is to tell people that it compiles while requests wait, its processes
    that were heard of lately: each job once, to one caller, and again after an hour at the soonest.
    """
    with db.write() as connection:
        lock_data_version(connection)
        recent = select(JOB_STATE.c.job).where(JOB_STATE.c.told_at > now - TOLD_EVERY)
        ripe = select(JOB_STATE.c.job).where(
            JOB_STATE.c.compiled_at <= now - SETTLES_AFTER, JOB_STATE.c.told_at.is_(None)
        )
        claimed = connection.execute(
            update(JOB_STATE)
            .where(JOB_STATE.c.job.in_(ripe), JOB_STATE.c.job.not_in(recent))
            .where(JOB_STATE.c.compiled_at.is_not(None))
            .values(told_at=now)
            .returning(JOB_STATE.c.job)
        )
        jobs = sorted({row.job for row in claimed})
    known = shown_jobs(db, now)
    return [[each for each in known if each.job == job] for job in jobs]
