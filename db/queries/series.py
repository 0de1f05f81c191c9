"""Every series: which case on which machine, and how much of it there is; and the workloads among them."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sqlalchemy import Column, ColumnElement, exists, select

from db.engine.session import Database
from db.queries.filters import Filters
from db.queries.frames import MOMENT, frame_of
from db.queries.selection import CASES, dtypes, matching_series, matching_trials, selected
from db.tables.trials import MACHINE, SERIES, STRATEGY, TRIAL, WORKLOAD


def _of_series(column: Column[Any]) -> ColumnElement[Any]:
    """What a column says of any trial of the series."""
    return select(column).where(TRIAL.c.series_id == SERIES.c.series_id).limit(1).scalar_subquery()


_COLUMNS: dict[str, tuple[ColumnElement[Any], str]] = {
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
    # A series has one origin, as its workload has.
    "source_kind": (_of_series(TRIAL.c.source_kind), "str"),
    "source_name": (_of_series(TRIAL.c.source_name), "str"),
}


def series_frame(db: Database, filters: Filters = Filters()) -> pd.DataFrame:  # noqa: B008
    """One row per series of the machines, workloads, strategies and tasks selected, by id.

    Other filters are about trials and leave a series as it is.
    """
    statement = (
        select(*selected(_COLUMNS))
        .select_from(CASES)
        .where(*matching_series(filters))
        .order_by(SERIES.c.series_id)
    )
    with db.read() as connection:
        return frame_of(connection.execute(statement).all(), dtypes(_COLUMNS))


def _of_some_trial(column: Column[Any]) -> ColumnElement[Any]:
    """What a column says of any trial of the workload."""
    of_workload = select(column).join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
    return of_workload.where(SERIES.c.workload_id == WORKLOAD.c.workload_id).limit(1).scalar_subquery()


_WORKLOAD_COLUMNS: dict[str, tuple[ColumnElement[Any], str]] = {
    "workload_id": (WORKLOAD.c.workload_id, "str"),
    "workload": (WORKLOAD.c.name, "str"),
    "workload_version": (WORKLOAD.c.version, "str"),
    "task": (WORKLOAD.c.task, "str"),
    "batch_size": (WORKLOAD.c.batch_size, "Int64"),
    "shape": (WORKLOAD.c.shape, "object"),
    "dtype": (WORKLOAD.c.dtype, "str"),
    # A workload has one origin: an imported one has the version of its format.
    "source_kind": (_of_some_trial(TRIAL.c.source_kind), "str"),
    "source_name": (_of_some_trial(TRIAL.c.source_name), "str"),
}


def measured_workloads(db: Database, filters: Filters = Filters()) -> pd.DataFrame:  # noqa: B008
    """One row per workload of the trials that `filters` let through, by name and id."""
    of_series = select(SERIES.c.workload_id).where(*matching_series(filters))
    if own := matching_trials(filters):
        of_series = of_series.where(exists().where(TRIAL.c.series_id == SERIES.c.series_id, *own))
    statement = (
        select(*selected(_WORKLOAD_COLUMNS))
        .where(WORKLOAD.c.workload_id.in_(of_series))
        .order_by(WORKLOAD.c.name, WORKLOAD.c.workload_id)
    )
    with db.read() as connection:
        rows = connection.execute(statement).all()
    return frame_of(rows, dtypes(_WORKLOAD_COLUMNS))
