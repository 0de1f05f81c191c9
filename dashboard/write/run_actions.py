"""What operators do from the dashboard: ask for a run, cancel one, pause and resume a schedule."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from ulid import ULID

from compilewatch.dashboard.login.access import Role, require
from compilewatch.dashboard.read.database import database_url
from compilewatch.dashboard.read.in_force import in_force
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.records.requests import RequestKind, RequestSpec, RequestState, RunRequest, Schedule
from compilewatch.db.service.hosts import unserved
from compilewatch.db.service.requests import cancel_request, new_request, save_request
from compilewatch.db.service.schedules import pause_schedule, resume_schedule

T = TypeVar("T")


def request_run(spec: RequestSpec, *, by: str, note: str | None = None) -> str:
    """Queue a run within the limits: what became of it, as a sentence. Raises CompilewatchError."""
    require(Role.OPERATOR)
    request, waiting = queue_request(spec, by=by, note=note)
    return f"Queued as {request.request_id}. {waiting or 'A service that fits measures it next.'}"


def queue_request(spec: RequestSpec, *, by: str, note: str | None = None) -> tuple[RunRequest, str | None]:
    """Queue a run within the limits, whoever asks: the request, and why nobody takes it now, if so.

    Raises CompilewatchError.
    """
    in_force().limits.require_request(spec)
    at = datetime.now(UTC)
    request = new_request(str(ULID()), RequestKind.MANUAL, spec, by=by, at=at, note=note)
    with open_database(database_url()) as database:
        save_request(database, request)
        return request, unserved(database, [request], at).get(request.request_id)


def run_now(schedule: Schedule, *, by: str) -> str:
    """Queue what a schedule measures, beside its own firings. Raises CompilewatchError."""
    spec = schedule.spec
    wanted = RequestSpec(suite=spec.suite, trials=spec.trials, machine=spec.machine)
    return request_run(wanted, by=by, note=f"schedule {schedule.name}, run now")


def set_paused(name: str, *, paused: bool, by: str) -> str:
    """Pause or resume a schedule. Raises CompilewatchError."""
    change, state = (pause_schedule, "paused") if paused else (resume_schedule, "active")
    changed = _write(lambda database: change(database, name, by=by, at=datetime.now(UTC)))
    return f"Schedule {name} is {state}." if changed else f"Schedule {name} was {state} already."


def cancel_run(request_id: str, *, by: str) -> str:
    """Cancel a request that waits, or have the one that runs end. Raises CompilewatchError."""
    state = _write(lambda database: cancel_request(database, request_id, by=by, at=datetime.now(UTC)))
    outcome = "is cancelled" if state is RequestState.CANCELLED else "ends within seconds"
    return f"Request {request_id} {outcome}."


def _write(change: Callable[[Database], T]) -> T:
    """Whoever drives the page must be an operator, whatever the page offered them."""
    require(Role.OPERATOR)
    with open_database(database_url()) as database:
        return change(database)
