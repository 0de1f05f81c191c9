"""Run requests: asked for, queued, taken by one service, cancelled, ended."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, func, select, update

from compilewatch.db.engine.repository import Repository, upsert
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import RUN, RUN_REQUEST
from compilewatch.db.errors import ConflictError, NotFoundError
from compilewatch.db.queries.selection import read_records
from compilewatch.db.records.requests import (
    ATTEMPTS,
    PRIORITY,
    REQUEST_TRANSITIONS,
    UNFINISHED,
    RequestEvent,
    RequestKind,
    RequestSpec,
    RequestState,
    RunRequest,
    RunStatus,
)
from compilewatch.db.service.fleet import cancel_jobs_of_runs
from compilewatch.db.store.trials import end_runs

_REQUESTS = Repository(RunRequest, RUN_REQUEST)
_READ_AT_ONCE = 50


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


def _requests(db: Database, statement: Select[Any], states: tuple[RequestState, ...]) -> list[RunRequest]:
    return read_records(db, RunRequest, statement.where(RUN_REQUEST.c.state.in_(states)))


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
    request = _REQUESTS.get(db, request_id)
    if request is None:
        raise NotFoundError(f"There is no run request {request_id}.", "See `compilewatch request list`.")
    return request


def unended_runs(db: Database, run_ids: Collection[str]) -> list[str]:
    """Those of these runs that were announced and whose end nobody noted."""
    statement = select(RUN.c.run_id).where(RUN.c.run_id.in_(run_ids), RUN.c.status == RunStatus.RUNNING)
    return db.scalars(statement.order_by(RUN.c.run_id))


def requests_by_state(db: Database) -> dict[RequestState, int]:
    """How many requests wait and run; both are there, with 0 where there are none."""
    statement = (
        select(RUN_REQUEST.c.state, func.count())
        .where(RUN_REQUEST.c.state.in_(UNFINISHED))
        .group_by(RUN_REQUEST.c.state)
    )
    counts = dict(db.rows(statement))
    return {state: counts.get(state, 0) for state in UNFINISHED}


def new_request(
    request_id: str, kind: RequestKind, spec: RequestSpec, *, by: str, at: datetime, note: str | None = None
) -> RunRequest:
    return RunRequest(
        request_id=request_id,
        kind=kind,
        priority=PRIORITY[kind],
        spec=spec,
        asked_by=by,
        asked_at=at,
        state=RequestState.QUEUED,
        history=(RequestEvent(at=at, state=RequestState.QUEUED, by=by, note=note),),
    )


def insert_request(connection: Connection, request: RunRequest) -> bool:
    """Queue a request inside the caller's transaction: False where its id is known already."""
    content = request.model_dump(mode="json") | {"asked_at": request.asked_at}
    statement = upsert(connection, RUN_REQUEST).on_conflict_do_nothing(index_elements=["request_id"])
    inserted = statement.values(**content).returning(RUN_REQUEST.c.request_id)
    return connection.scalar(inserted) is not None


def save_request(db: Database, request: RunRequest) -> bool:
    """Queue a request: True when it is new, False where its id is known already, whatever became of it."""
    with db.write() as connection:
        return insert_request(connection, request)


def take_request(
    db: Database, *, owner: str, at: datetime, fits: Callable[[RunRequest], bool], counts: bool = True
) -> RunRequest | None:
    """Take the next queued request that `fits`, or None. Of any number of services one gets it.

    Where it `counts`, the request is begun once more, and the runs of a service before end as cancelled;
    otherwise what that one began goes on.
    """
    for request in _queued(db):
        if not fits(request):
            continue
        with db.write() as connection:
            row = _locked(connection, request.request_id)
            if row["state"] is not RequestState.QUEUED:
                continue
            begun = {"attempts": row["attempts"] + 1, "run_ids": []} if counts else {}
            if counts:
                _give_up_runs(connection, row["run_ids"], at)
            values = {"owner": owner, "beat": row["beat"] + 1, **begun}
            _change(connection, row, RequestState.RUNNING, by=owner, at=at, values=values)
        return run_request(db, request.request_id)
    return None


def _queued(db: Database) -> Iterator[RunRequest]:
    """What waits, read as far as somebody looks. One that moves up meanwhile is met at the next look."""
    offset = 0
    while part := queue(db, limit=_READ_AT_ONCE, offset=offset):
        yield from part
        offset += len(part)


def beat_request(db: Database, request_id: str, *, owner: str) -> bool:
    """Say that `owner` still measures: False where it is to end, cancelled or taken over by another."""
    with db.write() as connection:
        row = _locked(connection, request_id)
        if not _is_run_by(row, owner):
            return False
        statement = update(RUN_REQUEST).where(RUN_REQUEST.c.request_id == request_id)
        connection.execute(statement.values(beat=row["beat"] + 1))
        return not row["cancel_asked"]


def note_runs(db: Database, request_id: str, run_ids: Sequence[str], *, owner: str, at: datetime) -> bool:
    """Say which runs a request begins: False where it is no longer `owner`'s, which then begins none.

    Runs of a service before that this one does not continue end as cancelled.
    """
    with db.write() as connection:
        row = _locked(connection, request_id)
        if not _is_run_by(row, owner):
            return False
        _give_up_runs(connection, [each for each in row["run_ids"] if each not in run_ids], at)
        statement = update(RUN_REQUEST).where(RUN_REQUEST.c.request_id == request_id)
        connection.execute(statement.values(run_ids=list(run_ids)))
    return True


def end_request(
    db: Database, request_id: str, state: RequestState, *, owner: str, at: datetime, note: str | None = None
) -> RequestState | None:
    """How the measuring of a request ended: the state it has now, None where it is no longer `owner`'s.

    `queued` means to be tried again; after `ATTEMPTS` times it is `failed` instead, and `cancelled` where
    somebody asked for that.
    """
    with db.write() as connection:
        row = _locked(connection, request_id)
        if not _is_run_by(row, owner):
            return None
        return _end(connection, row, state, by=owner, at=at, note=note)


def release_request(db: Database, request: RunRequest, *, by: str, at: datetime) -> RequestState | None:
    """Take a request from a service that does not move it any more: None where it moved after all."""
    with db.write() as connection:
        row = _locked(connection, request.request_id)
        if not _is_run_by(row, request.owner) or row["beat"] != request.beat:
            return None
        note = f"{request.owner} sends no heartbeat any more"
        return _end(connection, row, RequestState.QUEUED, by=by, at=at, note=note)


def cancel_request(db: Database, request_id: str, *, by: str, at: datetime) -> RequestState:
    """Cancel a queued request, or ask the service that runs it to: the state it has now.

    What of it waits for a worker is taken out at once. Raises NotFoundError for an unknown id, ConflictError
    for a request that is done.
    """
    with db.write() as connection:
        row = _locked(connection, request_id)
        state: RequestState = row["state"]
        if state not in UNFINISHED:
            raise ConflictError(f"Run request {request_id} is {state.value} already.", "Nothing was changed.")
        if state is RequestState.QUEUED:
            _change(connection, row, RequestState.CANCELLED, by=by, at=at)
            return RequestState.CANCELLED
        if not row["cancel_asked"]:
            values = {"cancel_asked": True}
            _change(connection, row, state, by=by, at=at, note="cancellation requested", values=values)
            cancel_jobs_of_runs(connection, row["run_ids"])
        return state


def _locked(connection: Connection, request_id: str) -> RowMapping:
    statement = select(RUN_REQUEST).where(RUN_REQUEST.c.request_id == request_id).with_for_update()
    row = connection.execute(statement).mappings().one_or_none()
    if row is None:
        raise NotFoundError(f"There is no run request {request_id}.", "See `compilewatch request list`.")
    return row


def _is_run_by(row: RowMapping, owner: str | None) -> bool:
    return row["state"] is RequestState.RUNNING and row["owner"] == owner


def _end(
    connection: Connection, row: RowMapping, state: RequestState, *, by: str, at: datetime, note: str | None
) -> RequestState:
    if state is RequestState.QUEUED and row["cancel_asked"]:
        state = RequestState.CANCELLED
    elif state is RequestState.QUEUED and row["attempts"] >= ATTEMPTS:
        state, note = RequestState.FAILED, f"begun {ATTEMPTS} times and never done; {note}"
    again = {"owner": None} if state is RequestState.QUEUED else {}
    _change(connection, row, state, by=by, at=at, note=note, values=again)
    return state


def _change(
    connection: Connection,
    row: RowMapping,
    state: RequestState,
    *,
    by: str,
    at: datetime,
    note: str | None = None,
    values: dict[str, Any] | None = None,
) -> None:
    """Note a change of the row, which ends its runs where it ends itself."""
    if state is not row["state"] and state not in REQUEST_TRANSITIONS[row["state"]]:
        raise AssertionError(f"a request that is {row['state'].value} becomes {state.value}")
    if state is RequestState.FINISHED:
        end_runs(connection, row["run_ids"], at, RunStatus.FINISHED)
    elif not REQUEST_TRANSITIONS[state]:
        _give_up_runs(connection, row["run_ids"], at)
    event = RequestEvent(at=at, state=state, by=by, note=note).model_dump(mode="json")
    statement = update(RUN_REQUEST).where(RUN_REQUEST.c.request_id == row["request_id"])
    history = [*row["history"], event]
    connection.execute(statement.values(state=state, history=history, **(values or {})))


def _give_up_runs(connection: Connection, run_ids: Sequence[str], at: datetime) -> None:
    if run_ids:
        end_runs(connection, run_ids, at, RunStatus.CANCELLED)
        cancel_jobs_of_runs(connection, run_ids)
