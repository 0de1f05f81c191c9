"""Which schema a database has, and bringing it to this release's."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from sqlalchemy import Connection, column, inspect, select, table, text

from compilewatch.db.engine.tables import METADATA
from compilewatch.db.errors import DatabaseError
from compilewatch.db.units import plural

# Revisions are numbered, so that "older" and "newer" need no graph.
HEAD = "0033"
OLDEST = "0033"
"""The first revision that is left: those before it were made one before the first release."""
UPGRADING_COMMITS = {"0032": "978766465463", "0033": "a51b7d109a11"}
"""The last commits that upgrade older databases, each to the revision it stands beside."""
VERSION_TABLE = "compilewatch_schema"
# Any number will do as long as every release takes the same one: it names the lock that makes concurrent
# upgrades of one PostgreSQL database wait for each other.
_UPGRADE_LOCK = 7_267_141_318


class SchemaState(Enum):
    EMPTY = "empty"
    FOREIGN = "foreign"
    TOO_OLD = "too old"
    OLDER = "older"
    CURRENT = "current"
    NEWER = "newer"


def schema_revision(connection: Connection) -> str | None:
    """The revision a database says it has, None where it says nothing."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    revision: str | None = connection.scalar(select(column("version_num")).select_from(table(VERSION_TABLE)))
    return revision


def schema_state(connection: Connection) -> SchemaState:
    """How a database's schema stands to this release's.

    A SQLite file that holds any other table belongs to another program. A PostgreSQL database may be shared:
    there only tables with our names are in the way.
    """
    revision = schema_revision(connection)
    if revision is None:
        present = set(inspect(connection).get_table_names()) - {VERSION_TABLE}
        conflicting = present if connection.dialect.name == "sqlite" else present & set(METADATA.tables)
        return SchemaState.FOREIGN if conflicting else SchemaState.EMPTY
    if revision == HEAD:
        return SchemaState.CURRENT
    if revision < OLDEST:
        return SchemaState.TOO_OLD
    return SchemaState.OLDER if revision < HEAD else SchemaState.NEWER


def require_current(connection: Connection, shown_url: str) -> None:
    """Raise DatabaseError, saying what to do, unless the schema is this release's."""
    match schema_state(connection):
        case SchemaState.EMPTY:
            raise DatabaseError(
                f"The database {shown_url} is empty.",
                "Run `compilewatch db upgrade` to create its tables, or `compilewatch run` to measure.",
            )
        case SchemaState.OLDER:
            raise DatabaseError(
                f"The database {shown_url} has schema {schema_revision(connection)}, "
                f"this release needs {HEAD}.",
                "Run `compilewatch db upgrade`.",
            )
        case state:
            _refuse_unusable(connection, state, shown_url)


def _refuse_unusable(connection: Connection, state: SchemaState, shown_url: str) -> None:
    if state is SchemaState.FOREIGN:
        raise DatabaseError(
            f"The database {shown_url} holds the tables of another program.",
            "Name a database of its own with --db.",
        )
    if state is SchemaState.TOO_OLD:
        revision = schema_revision(connection) or ""
        steps = [f"of commit {commit}" for to, commit in UPGRADING_COMMITS.items() if revision < to]
        raise DatabaseError(
            f"The database {shown_url} has schema {revision}, older than this release upgrades ({OLDEST}).",
            f"Run `compilewatch db upgrade` {', then '.join(steps)}, then of this release.",
        )
    if state is SchemaState.NEWER:
        raise DatabaseError(
            f"The database {shown_url} has schema {schema_revision(connection)}, which is newer than this "
            f"release knows ({HEAD}).",
            "Install the release of compilewatch that last upgraded it, or a newer one.",
        )


def upgrade(connection: Connection, shown_url: str) -> None:
    """Bring the schema to this release's inside the caller's transaction; nothing to do is fine.

    On SQLite the caller holds the write lock and has foreign keys switched off: a table that is rebuilt
    would otherwise take its children with it. Raises DatabaseError where the database is not ours to upgrade.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
    state = schema_state(connection)
    _refuse_unusable(connection, state, shown_url)
    if state is SchemaState.CURRENT:
        return
    _run_alembic(connection)
    if connection.dialect.name == "sqlite":
        orphans = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        if orphans:
            raise DatabaseError(
                f"The upgrade of {shown_url} would leave {plural(len(orphans), 'row')} without a parent; "
                "nothing was changed.",
                "Restore the database from a backup.",
            )


def _run_alembic(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD)
