"""Trials of runs that may have taken turns with others."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby, pairwise
from operator import attrgetter

import pandas as pd
from sqlalchemy import select

from db.engine.session import Database
from db.queries.filters import Filters
from db.queries.frames import frame_of
from db.queries.run_parts import RunPart, parts_within
from db.queries.selection import dtypes, matching, selected
from db.tables.trials import SERIES, TRIAL


def turn_trials(db: Database, filters: Filters) -> pd.DataFrame:
    """What `db.judge.sequence` reads of those trials that `filters` let through whose run shares its time on
    its machine with another, or measured several builds: any other took no turns. One row each, unordered.
    """
    names = ("run_id", "build_id", "started_at", "ended_at")
    statement = select(*selected(TRIAL, *names), *selected(SERIES, "machine_id")).join(
        SERIES, SERIES.c.series_id == TRIAL.c.series_id
    )
    with db.read() as connection:
        runs = _together(parts_within(connection, filters))
        rows = (
            connection.execute(statement.where(TRIAL.c.run_id.in_(runs), *matching(filters))).all()
            if runs
            else []
        )
    return frame_of(rows, dtypes(statement))


def _together(parts: Iterable[RunPart]) -> list[str]:
    """The runs of which a part shares its time with another one of its machine, or its run."""
    found = set()
    in_order = sorted(parts, key=attrgetter("machine_id", "first_seen_at"))
    for _, of_machine in groupby(in_order, key=attrgetter("machine_id")):
        longest: RunPart | None = None
        for part in of_machine:
            if longest is not None and part.first_seen_at <= longest.last_seen_at:
                found |= {longest.run_id, part.run_id}
            if longest is None or part.last_seen_at > longest.last_seen_at:
                longest = part
    by_run = sorted(in_order, key=attrgetter("run_id"))
    found |= {one.run_id for one, other in pairwise(by_run) if one.run_id == other.run_id}
    return sorted(found)
