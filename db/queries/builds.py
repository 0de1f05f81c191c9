"""Builds whole, as trials recorded them."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select

from db.engine.session import Database
from db.queries.selection import read_records
from db.records.trial import Build
from db.tables.trials import (
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


def packages_changed(db: Database, base: Collection[str], head: Collection[str]) -> list[str]:
    """Libraries of which `base` has other versions than `head`, such as "timm 1.0.9 to 1.0.20"."""
    found = [[build.packages for build in recorded_builds(db, side)] for side in (base, head)]
    names = sorted({name for side in found for packages in side for name in packages})
    versions = [
        (name, *(" / ".join(sorted({each[name] for each in side if name in each})) for side in found))
        for name in names
    ]
    return [f"{name} {old or 'unknown'} to {new or 'unknown'}" for name, old, new in versions if old != new]
