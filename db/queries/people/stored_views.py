"""Stored views: links too long to send, kept under a short id."""

from __future__ import annotations

from sqlalchemy import select

from compilewatch.db.engine.session import Database
from compilewatch.db.tables.trials import STORED_VIEW


def stored_link(db: Database, view_id: str) -> str | None:
    """The link that is kept under `view_id`; None where there is none."""
    if "\x00" in view_id:  # PostgreSQL refuses to look for it
        return None
    links: list[str] = db.scalars(select(STORED_VIEW.c.link).where(STORED_VIEW.c.view_id == view_id))
    return next(iter(links), None)
