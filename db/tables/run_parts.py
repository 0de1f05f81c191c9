"""The table of run parts: what each run measured, machine by machine and build by build."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Index, Table
from sqlmodel import Field

from compilewatch.db.tables.metadata import METADATA, Row


class RunPartRow(Row, table=True):
    """The trials that a run, a machine and a build have in common, so that no page groups over all trials to
    find which builds a machine measured, and when. Almost every run has one row.
    """

    __table_args__ = (Index(None, "machine_id", "last_seen_at"),)

    run_id: str = Field(primary_key=True, foreign_key="run.run_id")
    machine_id: str = Field(primary_key=True, foreign_key="machine.machine_id")
    build_id: str = Field(primary_key=True, foreign_key="build.build_id")
    trials: int = Field(sa_type=BigInteger)
    first_seen_at: datetime
    last_seen_at: datetime


RUN_PART: Table = METADATA.tables["run_part"]
