"""Builds whole, as trials recorded them."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.selection import read_records
from compilewatch.db.records.trial import Build
from compilewatch.db.tables.trials import (
    BUILD,
)


def recorded_builds(db: Database, build_ids: Collection[str]) -> list[Build]:
    """The builds with these ids, the one measured last first; settings are of single trials."""
    columns = [BUILD.c[name] for name in Build.model_fields if name in BUILD.c]
    statement = (
        select(*columns)
        .where(BUILD.c.build_id.in_(list(build_ids)))
        .order_by(BUILD.c.last_seen_at.desc(), BUILD.c.build_id)
    )
    return read_records(db, Build, statement)
