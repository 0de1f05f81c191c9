"""What reports show, without the rest of their content."""

from __future__ import annotations

from sqlalchemy import select

from db.session import Database
from db.tables import REPORT


def report_subjects(db: Database) -> dict[str, str]:
    """Report id -> the sentence that says what it shows; revoked reports say nothing any more."""
    statement = select(REPORT.c.report_id, REPORT.c.content["subject"].as_string()).where(
        REPORT.c.revoked_at.is_(None)
    )
    with db.read() as connection:
        rows = connection.execute(statement).all()
    return {report_id: subject for report_id, subject in rows if subject is not None}
