"""Every series: which case on which machine, and how much of it there is."""

from __future__ import annotations

import pandas as pd
from sqlalchemy import String, select, type_coerce

from db.queries.filters import Filters
from db.queries.frames import MOMENT, frame_of
from db.queries.selection import matching_series
from db.session import Database
from db.tables import MACHINE, SERIES, STRATEGY, WORKLOAD

_COLUMNS = {
    "series_id": (SERIES.c.series_id, "str"),
    "machine_id": (SERIES.c.machine_id, "str"),
    "machine": (MACHINE.c.name, "str"),
    "workload_id": (SERIES.c.workload_id, "str"),
    "workload": (WORKLOAD.c.name, "str"),
    "workload_version": (WORKLOAD.c.version, "str"),
    "task": (WORKLOAD.c.task, "str"),
    "strategy_id": (SERIES.c.strategy_id, "str"),
    "strategy": (STRATEGY.c.name, "str"),
    "cache": (STRATEGY.c.cache, "str"),
    "trials": (SERIES.c.trials, "Int64"),
    "failed_trials": (SERIES.c.failed_trials, "Int64"),
    "first_seen_at": (SERIES.c.first_seen_at, MOMENT),
    "last_seen_at": (SERIES.c.last_seen_at, MOMENT),
}


def series_frame(db: Database, filters: Filters = Filters()) -> pd.DataFrame:  # noqa: B008
    """One row per series of the machines, workloads, strategies and tasks selected, by id.

    Other filters are about trials and leave a series as it is.
    """
    columns = [
        type_coerce(column, String) if dtype == "str" else column for column, dtype in _COLUMNS.values()
    ]
    statement = (
        select(*columns)
        .select_from(SERIES)
        .join(MACHINE, MACHINE.c.machine_id == SERIES.c.machine_id)
        .join(WORKLOAD, WORKLOAD.c.workload_id == SERIES.c.workload_id)
        .join(STRATEGY, STRATEGY.c.strategy_id == SERIES.c.strategy_id)
        .where(*matching_series(filters))
        .order_by(SERIES.c.series_id)
    )
    with db.read() as connection:
        return frame_of(
            connection.execute(statement).all(), {name: dtype for name, (_, dtype) in _COLUMNS.items()}
        )
