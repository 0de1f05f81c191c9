"""Writes about reports. They are no measurements: the data version stays as it is."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import insert, update

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError
from compilewatch.db.queries.people.reports import find_report
from compilewatch.db.records.people.reports import BY_RETENTION, Report
from compilewatch.db.tables.trials import REPORT


def save_report(db: Database, report: Report) -> None:
    with db.write() as connection:
        connection.execute(insert(REPORT).values(**report.model_dump()))


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
    report = find_report(db, report_id)
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
