"""Which runs and builds were measured here, and which came from other tools."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, or_, select

from db.records import SourceKind
from db.session import Database
from db.table_run_parts import RUN_PART
from db.tables import RUN, TRIAL


def measured_runs(db: Database, build_id: str) -> tuple[str, ...]:
    """The runs that measured this build here, where imported results of it are stored too; else none."""
    of_build = select(RUN.c.run_id).where(
        RUN.c.run_id.in_(select(RUN_PART.c.run_id).where(RUN_PART.c.build_id == build_id))
    )
    with db.read() as connection:
        if connection.scalar(of_build.where(is_imported()).limit(1)) is None:
            return ()
        return tuple(connection.scalars(of_build.where(is_measured()).order_by(RUN.c.run_id)))


def is_measured() -> ColumnElement[bool]:
    """Whether the results of a row of `run` were measured, not imported.

    A run that was announced was measured; of any other one of its trials tells, found by the index on runs.
    """
    return or_(RUN.c.status.is_not(None), _source_kind() == SourceKind.MEASURED)


def is_imported() -> ColumnElement[bool]:
    """Whether the results of a row of `run` come from another tool."""
    return and_(RUN.c.status.is_(None), _source_kind() == SourceKind.IMPORTED)


def _source_kind() -> ColumnElement[SourceKind]:
    return select(TRIAL.c.source_kind).where(TRIAL.c.run_id == RUN.c.run_id).limit(1).scalar_subquery()
