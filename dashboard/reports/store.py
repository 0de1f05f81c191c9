"""Putting a frozen report into the database, under an id that nobody can guess."""

from __future__ import annotations

from dashboard.access import Role, require
from dashboard.reports.content import Content
from db.reports import Report, new_report_id
from db.session import open_database
from db.store_reports import save_report


def store_report(database_url: str, content: Content) -> str:
    """The id of the new report. Raises AccessError for who may not make one, DatabaseError."""
    require(Role.EDITOR)
    report = Report(
        report_id=new_report_id(),
        title=content.title,
        created_at=content.created_at,
        created_by=content.created_by,
        data_version=content.data_version,
        content=content.model_dump(mode="json"),
    )
    with open_database(database_url) as database:
        save_report(database, report)
    return report.report_id
