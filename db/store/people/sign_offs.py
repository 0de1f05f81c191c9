"""Writes about sign-offs. They are no measurements: the data version stays as it is."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import insert, update

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError
from compilewatch.db.records.people.sign_offs import SignOff
from compilewatch.db.tables.trials import SIGN_OFF


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
