"""Writes about reports. They are no measurements: the data version stays as it is."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import insert, update

from db.engine.session import Database
from db.errors import CompilewatchError, ConflictError, NotFoundError
from db.queries.reports import find_report, stored_link
from db.records.reports import BY_RETENTION, LONGEST_LINK, Report, SignOff, view_id_of
from db.store.writing import upsert
from db.tables.trials import REPORT, SIGN_OFF, STORED_VIEW


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


# Writes about sign-offs. They are no measurements: the data version stays as it is.


def save_sign_off(db: Database, sign_off: SignOff) -> None:
    """Store a new decision. Earlier ones stay: the newest that was not withdrawn is the one in force."""
    with db.write() as connection:
        connection.execute(insert(SIGN_OFF).values(**sign_off.model_dump()))


def withdraw_sign_off(db: Database, sign_off_id: str, *, by: str, at: datetime) -> bool:
    """Take a decision back: False where it was withdrawn already. Raises NotFoundError."""
    with db.write() as connection:
        result = connection.execute(
            update(SIGN_OFF)
            .where(SIGN_OFF.c.sign_off_id == sign_off_id, SIGN_OFF.c.withdrawn_at.is_(None))
            .values(withdrawn_at=at, withdrawn_by=by)
            .returning(SIGN_OFF.c.sign_off_id)
        ).all()
        known = connection.execute(
            SIGN_OFF.select().where(SIGN_OFF.c.sign_off_id == sign_off_id)
        ).one_or_none()
    if known is None:
        raise NotFoundError(
            f"There is no sign-off {sign_off_id}.", "Reload the page: it shows what is there."
        )
    return bool(result)


# Writes about stored views. They are no measurements: the data version stays as it is.


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
