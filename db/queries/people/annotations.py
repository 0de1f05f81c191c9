"""Annotations: what somebody wrote at a day or at a build."""

from __future__ import annotations

import pandas as pd
from sqlalchemy import or_, select

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError, one_line
from compilewatch.db.queries.frames import MOMENT, frame_of
from compilewatch.db.queries.selection import read_records
from compilewatch.db.records.people.annotations import Annotation
from compilewatch.db.tables.trials import ANNOTATION

_COLUMNS = {
    **dict.fromkeys(("annotation_id", "text", "url", "author"), "str"),
    **dict.fromkeys(("written_at", "happened_at"), MOMENT),
    **dict.fromkeys(("build_id", "machine_id"), "str"),
}


def annotations_frame(db: Database) -> pd.DataFrame:
    """One row per annotation, newest first; columns are the fields of `Annotation`."""
    return frame_of([[*each.model_dump().values()] for each in reversed(stored_annotations(db))], _COLUMNS)


def stored_annotations(db: Database, machine_id: str | None = None) -> list[Annotation]:
    """All of them, or those of one machine and of all machines, the last written last."""
    statement = select(ANNOTATION).order_by(ANNOTATION.c.written_at, ANNOTATION.c.annotation_id)
    if machine_id is not None:
        of_machine = or_(ANNOTATION.c.machine_id.is_(None), ANNOTATION.c.machine_id == machine_id)
        statement = statement.where(of_machine)
    return read_records(db, Annotation, statement)


def annotation_like(db: Database, prefix: str) -> Annotation:
    """The one whose id begins with `prefix`. Raises NotFoundError where none or several do."""
    found = (
        [each for each in stored_annotations(db) if each.annotation_id.startswith(prefix)] if prefix else []
    )
    if len(found) != 1:
        number = "Several annotations begin" if found else "No annotation begins"
        raise NotFoundError(
            f"{number} with {one_line(prefix)!r}.", "`compilewatch list annotations` shows their ids."
        )
    return found[0]
