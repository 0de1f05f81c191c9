"""Annotations: what somebody wrote at a day or at a build."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
from sqlalchemy import or_

from compilewatch.db.engine.repository import Repository
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import ANNOTATION
from compilewatch.db.errors import NotFoundError, one_line
from compilewatch.db.queries.case_parts import notes_of_cases
from compilewatch.db.queries.selection import MOMENT, Filters, frame_of
from compilewatch.db.records.people import Annotation

_COLUMNS = {
    **dict.fromkeys(("annotation_id", "text", "url", "author"), "str"),
    **dict.fromkeys(("written_at", "happened_at"), MOMENT),
    **dict.fromkeys(("build_id", "machine_id", "workload"), "str"),
}


ANNOTATIONS = Repository(
    Annotation, ANNOTATION, order=(ANNOTATION.c.written_at, ANNOTATION.c.annotation_id), is_data=True
)


def annotations_frame(db: Database) -> pd.DataFrame:
    """One row per annotation, newest first; columns are the fields of `Annotation`."""
    return frame_of([[*each.model_dump().values()] for each in reversed(stored_annotations(db))], _COLUMNS)


def stored_annotations(
    db: Database, machine_id: str | None = None, workload: str | None = None
) -> list[Annotation]:
    """All, or those that are about one machine, one workload or both, the last written last; what is about
    all of them is about each.
    """
    conditions = {"machine_id": machine_id, "workload": workload}
    columns = {ANNOTATION.c[name]: value for name, value in conditions.items() if value is not None}
    return ANNOTATIONS.all(db, *(or_(column.is_(None), column == value) for column, value in columns.items()))


def notes_beside(database: Database, filters: Filters) -> Callable[[Mapping[str, Any]], list[str]]:
    """What trials of a case, a row of `stored_cases`, say of themselves, and what people wrote at its build
    or on its last day.
    """
    of_trials = notes_of_cases(database, filters)
    written = stored_annotations(database)

    def notes(case: Mapping[str, Any]) -> list[str]:
        day = case["last_started_at"].date()
        texts = [
            each.text
            for each in written
            if each.machine_id in (None, case["machine_id"])
            and (each.build_id == case["build_id"] or (each.happened_at and each.happened_at.date() == day))
        ]
        key = (case["build_id"], case["workload_id"], case["strategy_id"])
        return [*of_trials.get(key, ()), *texts]

    return notes


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
