"""Series, workloads and strategies of the trials that filters let through."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sqlalchemy import Column, ColumnElement, Select, exists, func, select

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.selection import (
    CASES,
    matching,
    matching_series,
    matching_trials,
    plain,
    read_frame,
    selected,
)
from compilewatch.db.tables.trials import MACHINE, SERIES, STRATEGY, TRIAL, WORKLOAD


def _of_series(column: Column[Any]) -> ColumnElement[Any]:
    """What a column says of any trial of the series."""
    return select(column).where(TRIAL.c.series_id == SERIES.c.series_id).limit(1).scalar_subquery()


def series_frame(db: Database, filters: Filters = Filters()) -> pd.DataFrame:  # noqa: B008
    """One row per series of the machines, workloads, strategies and tasks selected, by id.

    Other filters are about trials and leave a series as it is.
    """
    statement = select(
        *selected(SERIES, "series_id", "machine_id"),
        *selected(MACHINE, machine="name"),
        *selected(SERIES, "workload_id"),
        *selected(WORKLOAD, workload="name", workload_version="version", task="task"),
        *selected(SERIES, "strategy_id"),
        *selected(STRATEGY, strategy="name", cache="cache"),
        *selected(SERIES, "trials", "failed_trials", "first_seen_at", "last_seen_at"),
        # A series has one origin, as its workload has.
        *(plain(_of_series(TRIAL.c[name])).label(name) for name in ("source_kind", "source_name")),
    )
    matched = statement.select_from(CASES).where(*matching_series(filters))
    return read_frame(db, matched.order_by(SERIES.c.series_id))


def most_runs(db: Database, filters: Filters) -> str | None:
    """The machine that measured most runs of the trials that `filters` let through; None without any."""
    statement = (
        select(SERIES.c.machine_id)
        .join(TRIAL, TRIAL.c.series_id == SERIES.c.series_id)
        .where(*matching(filters))
        .group_by(SERIES.c.machine_id)
        .order_by(func.count(TRIAL.c.run_id.distinct()).desc(), SERIES.c.machine_id.desc())
        .limit(1)
    )
    return next(iter(db.scalars(statement)), None)


def _of_some_trial(column: Column[Any]) -> ColumnElement[Any]:
    """What a column says of any trial of the workload."""
    of_workload = select(column).join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
    return of_workload.where(SERIES.c.workload_id == WORKLOAD.c.workload_id).limit(1).scalar_subquery()


def _measured(column: Column[Any], filters: Filters) -> Select[Any]:
    """What the series of the trials that `filters` let through have in a column."""
    of_series = select(column).where(*matching_series(filters))
    if own := matching_trials(filters):
        of_series = of_series.where(exists().where(TRIAL.c.series_id == SERIES.c.series_id, *own))
    return of_series


def measured_workloads(db: Database, filters: Filters) -> pd.DataFrame:
    """One row per workload of the trials that `filters` let through, by name and id."""
    of_series = _measured(SERIES.c.workload_id, filters)
    statement = select(
        *selected(WORKLOAD, workload_id="workload_id", workload="name", workload_version="version"),
        *selected(WORKLOAD, "task", "batch_size", "shape", "dtype"),
        # A workload has one origin: an imported one has the version of its format.
        *(plain(_of_some_trial(TRIAL.c[name])).label(name) for name in ("source_kind", "source_name")),
    )
    measured = statement.where(WORKLOAD.c.workload_id.in_(of_series))
    return read_frame(db, measured.order_by(WORKLOAD.c.name, WORKLOAD.c.workload_id))


def measured_strategies(db: Database, filters: Filters) -> list[str]:
    """The names of the strategies of the trials that `filters` let through."""
    measured = STRATEGY.c.strategy_id.in_(_measured(SERIES.c.strategy_id, filters))
    return [row.name for row in db.rows(select(STRATEGY.c.name).where(measured).distinct())]
