"""SQLAlchemy's dialects, each equal to itself in every engine: a process compiles a statement once, whatever
databases it opens. To compile one takes longer than a small database takes to answer it.
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Compiled
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

from compilewatch.db.tables.metadata import JsonText


def _to_json(value: object) -> str:
    """What a JSON column is sent; parts of a record arrive written already."""
    return value if isinstance(value, JsonText) else json.dumps(value, allow_nan=False)


_COMPILED: LRUCache[Any, Compiled] = LRUCache(1_000)
"""Statements of all engines, the last that were used."""
ENGINE_OPTIONS: dict[str, Any] = {
    "json_serializer": _to_json,
    "execution_options": {"compiled_cache": _COMPILED},
}
"""Of every engine: what a statement was compiled to holds the serializer too."""


class _Alike:
    """What is compiled for one is right for another where the database is of the same release."""

    server_version_info: Any

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.server_version_info == self.server_version_info

    def __hash__(self) -> int:
        return hash(type(self))


class OneSqlite(_Alike, SQLiteDialect_pysqlite):
    """The dialect of `sqlite+one`."""

    supports_statement_cache = True


class OnePostgresql(_Alike, PGDialect_psycopg):
    """The dialect of `postgresql+one`."""

    supports_statement_cache = True


registry.register("sqlite.one", __name__, OneSqlite.__name__)
registry.register("postgresql.one", __name__, OnePostgresql.__name__)
