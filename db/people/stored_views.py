"""Stored views: links too long to send, kept under a short id."""

from __future__ import annotations

from datetime import datetime

from compilewatch.db.engine.repository import Repository
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.writing import upsert
from compilewatch.db.errors import CompilewatchError, ConflictError
from compilewatch.db.records.people import LONGEST_LINK, StoredView, view_id_of
from compilewatch.db.tables.trials import STORED_VIEW

_VIEWS = Repository(StoredView, STORED_VIEW)


def stored_link(db: Database, view_id: str) -> str | None:
    """The link that is stored under `view_id`; None where there is none."""
    view = _VIEWS.get(db, view_id)
    return None if view is None else view.link


def store_view(db: Database, link: str, *, at: datetime, by: str | None) -> str:
    """Keep `link` and return its id; a link that is kept already is kept once.

    Raises CompilewatchError for a link that no browser could send either.
    """
    if len(link) > LONGEST_LINK:
        raise CompilewatchError("This selection is too long to save.", "Choose fewer workloads.")
    view_id = view_id_of(link)
    with db.write() as connection:
        statement = upsert(connection, STORED_VIEW).on_conflict_do_nothing(index_elements=["view_id"])
        connection.execute(statement.values(view_id=view_id, link=link, stored_at=at, stored_by=by))
    if stored_link(db, view_id) != link:
        raise ConflictError("Another view has this id.", "Change one selector and try again.")
    return view_id
