"""What readers write at a day or at a build: writing it and taking it away."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

from ulid import ULID

from compilewatch.dashboard.login.access import Role, require
from compilewatch.dashboard.read.database import database_url
from compilewatch.dashboard.read.versions import REFRESH_THROTTLE
from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import ConfigError
from compilewatch.db.records.people import Annotation
from compilewatch.db.service.annotations import ANNOTATIONS


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
