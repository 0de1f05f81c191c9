"""The table of stored views: links too long to send, kept under a short id."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Table
from sqlmodel import Field

from compilewatch.db.tables.metadata import METADATA, Row


class StoredViewRow(Row, table=True):
    """A link of the dashboard. Its id follows from `link`, so that the same view is kept once."""

    view_id: str = Field(primary_key=True)
    link: str
    stored_at: datetime
    stored_by: str | None


STORED_VIEW: Table = METADATA.tables["stored_view"]
