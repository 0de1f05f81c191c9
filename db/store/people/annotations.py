"""Writes about annotations. Pages draw them among the figures, so the version of the data grows."""

from __future__ import annotations

from sqlalchemy import delete, insert

from compilewatch.db.engine.session import Database
from compilewatch.db.records.people.annotations import Annotation
from compilewatch.db.store.writing import bump_data_version, lock_data_version
from compilewatch.db.tables.trials import ANNOTATION


def save_annotation(db: Database, annotation: Annotation) -> None:
    """Store a new one."""
    with db.write() as connection:
        lock_data_version(connection)
        connection.execute(insert(ANNOTATION).values(**annotation.model_dump()))
        bump_data_version(connection)


def remove_annotation(db: Database, annotation_id: str) -> bool:
    """Take it away: False where it is gone already."""
    with db.write() as connection:
        lock_data_version(connection)
        removed = connection.execute(
            delete(ANNOTATION)
            .where(ANNOTATION.c.annotation_id == annotation_id)
            .returning(ANNOTATION.c.annotation_id)
        ).all()
        if removed:
            bump_data_version(connection)
    return bool(removed)
