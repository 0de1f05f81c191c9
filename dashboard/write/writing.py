"""What readers and operators of the dashboard write: notes at a day or a build, triage, views kept under a
short id, runs that are asked for or cancelled, and schedules paused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import TypeVar
from urllib.parse import parse_qs, urlencode

from pydantic import ValidationError
from ulid import ULID

from compilewatch.dashboard.links.links import STORED_VIEW, Page, page_named
from compilewatch.dashboard.links.values import quoted
from compilewatch.dashboard.login.access import Role, person_here, require
from compilewatch.dashboard.read.database import database_url, in_force, reader
from compilewatch.dashboard.read.versions import REFRESH_THROTTLE
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.errors import CompilewatchError, ConfigError
from compilewatch.db.judge.compare.recorded_regressions import TriageEvent
from compilewatch.db.records.people import Annotation, TriageState
from compilewatch.db.records.requests import RequestKind, RequestSpec, RequestState, RunRequest, Schedule
from compilewatch.db.service.annotations import ANNOTATIONS
from compilewatch.db.service.hosts import unserved
from compilewatch.db.service.recording import triage
from compilewatch.db.service.reports import store_view, stored_link
from compilewatch.db.service.requests import cancel_request, new_request, save_request
from compilewatch.db.service.schedules import pause_schedule, resume_schedule
from compilewatch.db.units import plural


def annotate(
    *,
    text: str,
    url: str,
    by: str,
    day: date | None,
    build_id: str | None,
    machine_id: str | None,
    workload: str | None,
) -> str:
    """Store a note for every reader: a sentence on it. Raises CompilewatchError, ValidationError."""
    require(Role.EDITOR)
    save(text=text, url=url, by=by, day=day, build_id=build_id, machine_id=machine_id, workload=workload)
    return f"Written by {by}. Every reader sees it."


def save(
    *,
    text: str,
    url: str,
    by: str,
    day: date | None,
    build_id: str | None,
    machine_id: str | None,
    workload: str | None,
) -> Annotation:
    """The note, stored for whoever was let in before. Raises as `annotate`."""
    if not text.strip():
        raise ConfigError("The note is empty.", "Say in a few words what happened.")
    note = Annotation(
        annotation_id=str(ULID()),
        text=" ".join(text.split()),
        url=url.strip() or None,
        author=by,
        written_at=datetime.now(UTC),
        happened_at=datetime.combine(day or datetime.now(UTC).date(), time(), UTC)
        if build_id is None
        else None,
        build_id=build_id,
        machine_id=machine_id,
        workload=workload,
    )
    with open_database(database_url()) as database:
        ANNOTATIONS.add(database, note)
    REFRESH_THROTTLE.catch_up()
    return note


def remove(annotation_id: str) -> str:
    """Take a note away: a sentence on it. Raises CompilewatchError."""
    require(Role.EDITOR)
    with open_database(database_url()) as database:
        is_removed = ANNOTATIONS.remove(database, annotation_id)
    REFRESH_THROTTLE.catch_up()
    return "Removed." if is_removed else "It was removed already."


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


# A view of a view could lead back to itself; the others are Streamlit's own, which hide parts of a page.
_NOT_OPENED = frozenset({STORED_VIEW, "embed", "embed_options"})


def stored_address(view_id: str) -> tuple[Page, str] | None:
    """Page and query of the view that is kept under `view_id`; None where there is none to open.

    The query is as it was written: the page itself says what of it no longer exists. Raises DatabaseError.
    """
    link = stored_link(reader(), view_id)
    path, _, query = (link or "").partition("?")
    page = None if link is None else page_named(path)
    if page is None:
        return None
    wanted = parse_qs(query, keep_blank_values=True)
    opened = {key: values for key, values in wanted.items() if key.lower() not in _NOT_OPENED}
    return page, urlencode(opened, doseq=True)


def why_not_opened(view_id: str) -> str:
    """Why a page was drawn that still has `view_id` in its address. Raises DatabaseError."""
    if stored_link(reader(), view_id) is None:
        return f"No view has the id {quoted(view_id)}. Check that the link is complete."
    if stored_address(view_id) is None:
        return f"The view {quoted(view_id)} is of a page that this release does not have."
    return f"The view {quoted(view_id)} could not be read. Load the page again to open it."


def keep(link: str) -> str:
    """Keep `link` and return its id. Every reader may: it holds nothing that the link itself does not."""
    person = person_here()
    with open_database(database_url()) as database:
        return store_view(database, link, at=datetime.now(UTC), by=person.name)


LONGEST_NOTE = 2_000
LONGEST_URL = 500
_PROBLEMS = {
    "author": "The name cannot be stored: it is too long or holds control characters.",
    "note": "The note cannot be stored: it is too long or holds control characters.",
    "url": "The link must begin with https:// or http:// and hold no blanks.",
}


@dataclass(frozen=True)
class TriageDecision:
    """What somebody wants to record about some regressions, as typed."""

    regression_ids: tuple[str, ...]
    state: TriageState
    author: str
    note: str
    url: str

    @property
    def question(self) -> str:
        """What is asked before it is recorded."""
        what = plural(len(self.regression_ids), "regression")
        return f"Record {what} as {self.state.value}, by {self.author}? Every reader sees it."

    def problem(self) -> str | None:
        """Why it cannot be recorded as typed, as a sentence; None when it can."""
        if not self.regression_ids:
            return "Choose at least one regression in the table."
        if not self.author:
            return "Type your name: what is recorded says by whom."
        try:
            self.event(datetime.now(UTC))
        except ValidationError as error:
            return _PROBLEMS.get(str(error.errors()[0]["loc"][0]), "This cannot be stored as typed.")
        return None

    def event(self, at: datetime) -> TriageEvent:
        """What is written. Raises pydantic's ValidationError where it cannot be."""
        return TriageEvent(
            state=self.state, author=self.author, at=at, note=self.note or None, url=self.url or None
        )


def triage_decision(
    regression_ids: Sequence[str], state: TriageState, *, author: str, note: str, url: str
) -> TriageDecision:
    """From what was typed: blanks at the ends removed, names on one line."""
    return TriageDecision(tuple(regression_ids), state, " ".join(author.split()), note.strip(), url.strip())


def record(url: str, what: TriageDecision) -> tuple[str, bool]:
    """Write `what` into the database `url`: a sentence on what came of it, and whether all of it was written.

    What can be written is; a regression that was revised in the meantime is named.
    """
    try:
        require(Role.EDITOR)
    except CompilewatchError as error:
        return str(error), False
    event = what.event(datetime.now(UTC))
    new = 0
    problems: list[str] = []
    try:
        with open_database(url) as database:
            for regression_id in what.regression_ids:
                try:
                    new += triage(database, regression_id, event)
                except CompilewatchError as error:
                    problems.append(str(error))
    except CompilewatchError as error:
        problems.append(str(error))
    REFRESH_THROTTLE.catch_up()
    known = len(what.regression_ids) - new - len(problems)
    message = f"Recorded {plural(new, 'regression')} as {what.state.value}, by {what.author}."
    if known > 0:
        message += f" {plural(known, 'regression')} said so already."
    return " ".join([message, *problems]), not problems
