"""Builds whole, as trials recorded them."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select

from db.records import Build
from db.session import Database
from db.tables import BUILD


def recorded_builds(db: Database, build_ids: Collection[str]) -> list[Build]:
    """The builds with these ids, the one measured last first."""
    columns = [BUILD.c[name] for name in Build.model_fields]
    statement = (
        select(*columns)
        .where(BUILD.c.build_id.in_(list(build_ids)))
        .order_by(BUILD.c.last_seen_at.desc(), BUILD.c.build_id)
    )
    with db.read() as connection:
        rows = connection.execute(statement).mappings()
        return [Build.model_validate(dict(row)) for row in rows]
