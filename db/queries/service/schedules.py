"""Reads of schedules, their firings and the queue of run requests."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Select, func, select

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError
from compilewatch.db.queries.selection import read_records
from compilewatch.db.records.service.requests import UNFINISHED, RequestState, RunRequest
from compilewatch.db.records.service.runs import RunStatus
from compilewatch.db.records.service.schedules import Firing, Schedule
from compilewatch.db.tables.trials import BUILD, FIRING, MACHINE, RUN, RUN_REQUEST, SCHEDULE, SERIES, TRIAL


def schedules(db: Database) -> list[Schedule]:
    """All schedules, by name."""
    return read_records(db, Schedule, select(SCHEDULE).order_by(SCHEDULE.c.name))


def last_firings(db: Database) -> dict[str, Firing]:
    """The newest firing of every schedule that ever fired, by the schedule's name."""
    newest = select(FIRING.c.schedule, func.max(FIRING.c.fire_at).label("fire_at"))
    last = newest.group_by(FIRING.c.schedule).subquery()
    statement = select(FIRING).join(
        last, (FIRING.c.schedule == last.c.schedule) & (FIRING.c.fire_at == last.c.fire_at)
    )
    return {each.schedule: each for each in read_records(db, Firing, statement)}


def firings(db: Database, schedule: str, limit: int = 100) -> list[Firing]:
    """The newest firings of one schedule, newest first."""
    statement = select(FIRING).where(FIRING.c.schedule == schedule).order_by(FIRING.c.fire_at.desc())
    return read_records(db, Firing, statement.limit(limit))


def requests(
    db: Database, *, states: tuple[RequestState, ...] = tuple(RequestState), limit: int | None = None
) -> list[RunRequest]:
    """Run requests, newest first."""
    newest_first = (RUN_REQUEST.c.asked_at.desc(), RUN_REQUEST.c.request_id.desc())
    return _requests(db, select(RUN_REQUEST).order_by(*newest_first).limit(limit), states)


def queue(db: Database, *, limit: int | None = None, offset: int = 0) -> list[RunRequest]:
    """Queued requests in the order in which they are taken, by priority, then by when asked: at most `limit`
    after the first `offset`."""
    order = (RUN_REQUEST.c.priority.desc(), RUN_REQUEST.c.asked_at, RUN_REQUEST.c.request_id)
    return _requests(
        db, select(RUN_REQUEST).order_by(*order).limit(limit).offset(offset), (RequestState.QUEUED,)
    )


def running_requests(db: Database) -> list[RunRequest]:
    return _requests(db, select(RUN_REQUEST), (RequestState.RUNNING,))


def cancelled_requests(db: Database, request_ids: Collection[str]) -> list[str]:
    """Those of these requests that somebody asked to cancel."""
    if not request_ids:
        return []
    statement = select(RUN_REQUEST.c.request_id).where(
        RUN_REQUEST.c.request_id.in_(request_ids), RUN_REQUEST.c.cancel_asked
    )
    return db.scalars(statement)


def run_request(db: Database, request_id: str) -> RunRequest:
    """One request. Raises NotFoundError where there is none with this id."""
    statement = select(RUN_REQUEST).where(RUN_REQUEST.c.request_id == request_id)
    for request in read_records(db, RunRequest, statement):
        return request
    raise NotFoundError(f"There is no run request {request_id}.", "See `compilewatch request list`.")


def unended_runs(db: Database, run_ids: Collection[str]) -> list[str]:
    """Those of these runs that were announced and whose end nobody noted."""
    statement = select(RUN.c.run_id).where(RUN.c.run_id.in_(run_ids), RUN.c.status == RunStatus.RUNNING)
    return db.scalars(statement.order_by(RUN.c.run_id))


def unfinished_request_of(connection: Connection, schedule: str) -> str | None:
    """The id of a request that a firing of `schedule` queued and that is not done, if there is one."""
    request_id: str | None = connection.scalar(
        select(RUN_REQUEST.c.request_id)
        .join(FIRING, FIRING.c.request_id == RUN_REQUEST.c.request_id)
        .where(FIRING.c.schedule == schedule, RUN_REQUEST.c.state.in_(UNFINISHED))
        .limit(1)
    )
    return request_id


def measured_stacks(db: Database, machine: str) -> set[tuple[str, str | None, str | None]]:
    """The torch releases, their variants and the drivers that the host called `machine` has trials of."""
    statement = (
        select(BUILD.c.torch, BUILD.c.torch_variant, BUILD.c.driver)
        .join(TRIAL, TRIAL.c.build_id == BUILD.c.build_id)
        .where(TRIAL.c.machine_name == machine)
        .distinct()
    )
    return {tuple(row) for row in db.rows(statement)}


def names_of_machine(db: Database, host: str) -> set[str]:
    """Everything the host called `host` is known as: its name, and the ids and devices of its machines."""
    statement = (
        select(MACHINE.c.machine_id, MACHINE.c.device_name)
        .join(SERIES, SERIES.c.machine_id == MACHINE.c.machine_id)
        .where(MACHINE.c.name == host)
        .distinct()
    )
    return {host}.union(*db.rows(statement))


def _requests(db: Database, statement: Select[Any], states: tuple[RequestState, ...]) -> list[RunRequest]:
    return read_records(db, RunRequest, statement.where(RUN_REQUEST.c.state.in_(states)))


def requests_by_state(db: Database) -> dict[RequestState, int]:
    """How many requests wait and run; both are there, with 0 where there are none."""
    statement = (
        select(RUN_REQUEST.c.state, func.count())
        .where(RUN_REQUEST.c.state.in_(UNFINISHED))
        .group_by(RUN_REQUEST.c.state)
    )
    counts = dict(db.rows(statement))
    return {state: counts.get(state, 0) for state in UNFINISHED}
