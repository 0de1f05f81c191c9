"""Reads of sign-offs."""

from __future__ import annotations

from sqlalchemy import select

from db.session import Database
from db.sign_offs import SignOff
from db.tables import SIGN_OFF


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
