"""Trials of runs that may have taken turns with others."""

from __future__ import annotations

import pandas as pd
from sqlalchemy import Select, func, or_, select

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.frames import frame_of
from compilewatch.db.queries.run_parts import within
from compilewatch.db.queries.selection import dtypes, matching, selected
from compilewatch.db.tables.runs import RUN_PART
from compilewatch.db.tables.trials import SERIES, TRIAL


def turn_trials(db: Database, filters: Filters) -> pd.DataFrame:
    """What `db.judge.sequence` reads of those trials that `filters` let through whose run shares its time on
    its machine with another, or measured several builds: any other took no turns. One row each, unordered.
    """
    names = ("run_id", "build_id", "started_at", "ended_at")
    statement = select(*selected(TRIAL, *names), *selected(SERIES, "machine_id")).join(
        SERIES, SERIES.c.series_id == TRIAL.c.series_id
    )
    with db.read() as connection:
        runs = connection.scalars(_together(filters)).all()
        chosen = statement.where(TRIAL.c.run_id.in_(runs), *matching(filters))
        return frame_of(connection.execute(chosen) if runs else (), dtypes(statement))


def _together(filters: Filters) -> Select[tuple[str]]:
    """The runs of which a part shares its time with another one of its machine, or its run."""
    part = RUN_PART.c
    machine, start = part.machine_id, part.first_seen_at
    before = func.max(part.last_seen_at).over(partition_by=machine, order_by=start, rows=(None, -1))
    after = func.lead(start).over(partition_by=machine, order_by=start)
    parts = (
        select(
            *(part.run_id, part.first_seen_at, part.last_seen_at),
            *(before.label("busy_until"), after.label("next_at")),
            func.count().over(partition_by=part.run_id).label("parts"),
        )
        .where(*within(filters))
        .subquery()
    )
    shares = (parts.c.first_seen_at <= parts.c.busy_until) | (parts.c.next_at <= parts.c.last_seen_at)
    return select(parts.c.run_id).where(or_(shares, parts.c.parts > 1)).distinct()
