"""Whether anything was written since the last look."""

from __future__ import annotations

from sqlalchemy import select

from db.session import Database
from db.tables import DATA_VERSION


def data_version(db: Database) -> int:
    """A number that grows with every write, in the transaction of that write."""
    with db.read() as connection:
        version: int = connection.execute(select(DATA_VERSION.c.version)).scalar_one()
    return version
