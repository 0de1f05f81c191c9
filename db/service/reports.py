"""Frozen reports: one by its id, or all of them without their content.

Stored views: links too long to send, kept under a short id.
"""

from __future__ import annotations

from datetime import datetime

import pandas as pd
from sqlalchemy import func, select, update

from compilewatch.db.engine.repository import Repository, upsert
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import REPORT, STORED_VIEW
from compilewatch.db.errors import CompilewatchError, ConflictError, NotFoundError
from compilewatch.db.queries.selection import read_frame
from compilewatch.db.records.people import BY_RETENTION, LONGEST_LINK, Report, StoredView, view_id_of

REPORTS = Repository(Report, REPORT)


def reports_frame(db: Database) -> pd.DataFrame:
    """One row per report, newest first."""
    columns = (column for column in REPORT.c if column is not REPORT.c.content)
    statement = select(*columns).order_by(REPORT.c.created_at.desc(), REPORT.c.report_id)
    return read_frame(db, statement)


def reports_revision(db: Database) -> tuple[object, ...]:
    """Differs from what it was as soon as a report is made, revoked or deleted."""
    columns = (REPORT.c.created_at, REPORT.c.revoked_at)
    statement = select(func.count(), *(part(each) for each in columns for part in (func.count, func.max)))
    return tuple(db.rows(statement)[0])


# What reports show, without the rest of their content.


def report_subjects(db: Database) -> dict[str, str]:
    """Report id -> the sentence that says what it shows; revoked reports say nothing any more."""
    statement = select(REPORT.c.report_id, REPORT.c.content["subject"].as_string()).where(
        REPORT.c.revoked_at.is_(None)
    )
    return {report_id: subject for report_id, subject in db.rows(statement) if subject is not None}


def revoke_report(db: Database, report_id: str, *, at: datetime, by: str) -> Report:
    """Take a report's content away for good; who and when stays. A second time changes nothing.

    Raises NotFoundError.
    """
    values = {"revoked_at": at, "revoked_by": by, "content": None}
    with db.write() as connection:
        connection.execute(
            update(REPORT)
            .where(REPORT.c.report_id == report_id, REPORT.c.revoked_at.is_(None))
            .values(**values)
        )
    report = REPORTS.get(db, report_id)
    if report is None:
        raise NotFoundError(f"There is no report {report_id}.", "See `compilewatch report list`.")
    return report


def expire_reports(db: Database, frozen_before: datetime, *, at: datetime) -> int:
    """Take away the content of every report that was frozen earlier; how many those are."""
    values = {"revoked_at": at, "revoked_by": BY_RETENTION, "content": None}
    with db.write() as connection:
        expired = connection.execute(
            update(REPORT)
            .where(REPORT.c.created_at < frozen_before, REPORT.c.revoked_at.is_(None))
            .values(**values)
            .returning(REPORT.c.report_id)
        ).all()
    return len(expired)


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
