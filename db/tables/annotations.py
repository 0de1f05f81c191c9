"""The table of annotations: notes at a day or at a build, on every axis of time."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Table
from sqlmodel import Field

from db.tables.metadata import METADATA, Row


class AnnotationRow(Row, table=True):
    """What somebody wrote beside the figures; of every machine where `machine_id` is null."""

    annotation_id: str = Field(primary_key=True)
    text: str
    url: str | None
    author: str
    written_at: datetime
    happened_at: datetime | None
    build_id: str | None = Field(foreign_key="build.build_id")
    machine_id: str | None = Field(foreign_key="machine.machine_id")


ANNOTATION: Table = METADATA.tables["annotation"]
