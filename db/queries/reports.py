"""Frozen reports: one by its id, or all of them without their content."""

from __future__ import annotations

import pandas as pd
from sqlalchemy import func, select

from db.queries.frames import MOMENT, frame_of
from db.reports import Report
from db.session import Database
from db.tables import REPORT

_COLUMNS = {
    "report_id": "str",
    "title": "str",
    "created_at": MOMENT,
    "created_by": "str",
    "data_version": "Int64",
    "revoked_at": MOMENT,
    "revoked_by": "str",
}


def find_report(db: Database, report_id: str) -> Report | None:
    """The report with this id, revoked or not; None where there never was one."""
    if "\x00" in report_id:  # PostgreSQL refuses to look for it
        return None
    with db.read() as connection:
        row = connection.execute(select(REPORT).where(REPORT.c.report_id == report_id)).mappings().first()
    return None if row is None else Report.model_validate(dict(row))


def reports_frame(db: Database) -> pd.DataFrame:
    """One row per report, newest first."""
    statement = select(*(REPORT.c[name] for name in _COLUMNS)).order_by(
        REPORT.c.created_at.desc(), REPORT.c.report_id
    )
    with db.read() as connection:
        return frame_of(connection.execute(statement).all(), _COLUMNS)


def reports_revision(db: Database) -> tuple[object, ...]:
    """Differs from what it was as soon as a report is made, revoked or deleted."""
    columns = (REPORT.c.created_at, REPORT.c.revoked_at)
    statement = select(func.count(), *(part(each) for each in columns for part in (func.count, func.max)))
    with db.read() as connection:
        return tuple(connection.execute(statement).one())
