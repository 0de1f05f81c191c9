"""Sign-offs: who accepted or rejected an upgrade."""

from __future__ import annotations

from sqlalchemy import select

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.selection import read_records
from compilewatch.db.records.people.sign_offs import SignOff
from compilewatch.db.tables.trials import SIGN_OFF


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
    return read_records(db, SignOff, statement)
