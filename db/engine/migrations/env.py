"""What Alembic runs for every command; the connection is handed over by `db.engine.schema`."""

from __future__ import annotations

from alembic import context

from compilewatch.db.engine.schema import VERSION_TABLE
from compilewatch.db.engine.tables import METADATA


def _is_ours(name: str | None, kind: str, _parents: object) -> bool:
    """Leaves the tables of other programs in a shared database alone."""
    return kind != "table" or name in METADATA.tables


def run_migrations() -> None:
    """Run the command on the caller's connection, inside the caller's transaction."""
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=METADATA,
        version_table=VERSION_TABLE,
        include_name=_is_ours,
        compare_type=True,
        render_as_batch=True,
    )
    context.run_migrations()


run_migrations()
