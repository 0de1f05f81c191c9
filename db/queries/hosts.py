"""Reads of measuring hosts."""

from __future__ import annotations

from sqlalchemy import select

from db.hosts import HostState
from db.session import Database
from db.tables import HOST


def hosts(db: Database) -> list[HostState]:
    """Every host whose service ever spoke, by name."""
    with db.read() as connection:
        rows = connection.execute(select(HOST).order_by(HOST.c.name)).mappings()
        return [HostState.model_validate(dict(row)) for row in rows]
