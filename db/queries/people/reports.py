"""Frozen reports: one by its id, or all of them without their content."""

from __future__ import annotations

import pandas as pd
from sqlalchemy import func, select

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.selection import read_frame, read_records
from compilewatch.db.records.people.reports import Report
from compilewatch.db.tables.trials import REPORT


def find_report(db: Database, report_id: str) -> Report | None:
    """The report with this id, revoked or not; None where there never was one."""
    if "\x00" in report_id:  # PostgreSQL refuses to look for it
        return None
    reports = read_records(db, Report, select(REPORT).where(REPORT.c.report_id == report_id))
    return next(iter(reports), None)


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
