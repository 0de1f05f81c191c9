"""What people call machines and builds, taken for their ids as in the links of pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.links.resolution import Names, the_one
from db.engine.session import Database
from db.queries.facets import build_names, machine_names

_NAMES = {"machine": machine_names, "build": build_names}


def with_ids(database: Database, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` of parameters with ids for names that only one machine or build has, and all else as it is."""
    return {
        key: _ids(value, _NAMES[key](database)) if value and key in _NAMES else value
        for key, value in values.items()
    }


def _ids(value: str | tuple[str, ...], names: Names) -> str | tuple[str, ...]:
    ids = {known for _, known in names}
    if isinstance(value, str):
        return the_one(value, ids, names) or value
    return tuple(dict.fromkeys(the_one(item, ids, names) or item for item in value))
