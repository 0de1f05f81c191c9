"""Frozen reports: one by its id, or all of them without their content."""

from __future__ import annotations

import pandas as pd
from sqlalchemy import func, select

from db.engine.session import Database
from db.queries.frames import MOMENT, frame_of
from db.records.reports import Report, SignOff
from db.tables.trials import REPORT, SIGN_OFF, STORED_VIEW

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


# What reports show, without the rest of their content.


def report_subjects(db: Database) -> dict[str, str]:
    """Report id -> the sentence that says what it shows; revoked reports say nothing any more."""
    statement = select(REPORT.c.report_id, REPORT.c.content["subject"].as_string()).where(
        REPORT.c.revoked_at.is_(None)
    )
    with db.read() as connection:
        rows = connection.execute(statement).all()
    return {report_id: subject for report_id, subject in rows if subject is not None}


# Reads of sign-offs.


def sign_offs(db: Database, machine_id: str, base_build_id: str, head_build_id: str) -> list[SignOff]:
    """What was decided about one upgrade on one machine, withdrawn decisions too, oldest first."""
    statement = (
        select(SIGN_OFF)
        .where(
            SIGN_OFF.c.machine_id == machine_id,
            SIGN_OFF.c.base_build_id == base_build_id,
            SIGN_OFF.c.head_build_id == head_build_id,
        )
        .order_by(SIGN_OFF.c.at, SIGN_OFF.c.sign_off_id)
    )
    with db.read() as connection:
        return [SignOff.model_validate(dict(row)) for row in connection.execute(statement).mappings()]


# Reads of stored views.


def stored_link(db: Database, view_id: str) -> str | None:
    """The link that is kept under `view_id`; None where there is none."""
    if "\x00" in view_id:  # PostgreSQL refuses to look for it
        return None
    with db.read() as connection:
        link: str | None = connection.scalar(
            select(STORED_VIEW.c.link).where(STORED_VIEW.c.view_id == view_id)
        )
    return link
