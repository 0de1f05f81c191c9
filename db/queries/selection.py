"""Filters as conditions on the trial table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Column, ColumnElement, String, select, type_coerce

from db.queries.filters import Filters
from db.tables.trials import MACHINE, SERIES, STRATEGY, TRIAL, WORKLOAD


def matching(filters: Filters) -> list[ColumnElement[bool]]:
    """Conditions on `trial` that all hold for exactly the trials selected."""
    conditions = matching_trials(filters)
    series = matching_series(filters)
    if series:
        conditions.append(TRIAL.c.series_id.in_(select(SERIES.c.series_id).where(*series)))
    return conditions


def matching_trials(filters: Filters) -> list[ColumnElement[bool]]:
    """Conditions on `trial` by what is each trial's own; empty where all trials of the series match."""
    conditions: list[ColumnElement[bool]] = [
        column.in_(values)
        for column, values in (
            (TRIAL.c.build_id, filters.builds),
            (TRIAL.c.run_id, filters.runs),
            (TRIAL.c.suite, filters.suites),
            (TRIAL.c.status, filters.statuses),
            (TRIAL.c.source_kind, filters.sources),
        )
        if values
    ]
    if filters.since is not None:
        conditions.append(TRIAL.c.started_at >= filters.since)
    if filters.until is not None:
        conditions.append(TRIAL.c.started_at <= filters.until)
    return conditions


def matching_series(filters: Filters) -> list[ColumnElement[bool]]:
    """Conditions on `series` by machine, workload, strategy and task; empty where all series match."""
    conditions: list[ColumnElement[bool]] = []
    if filters.machines:
        conditions.append(SERIES.c.machine_id.in_(filters.machines))
    if filters.strategies:
        named = select(STRATEGY.c.strategy_id).where(STRATEGY.c.name.in_(filters.strategies))
        conditions.append(SERIES.c.strategy_id.in_(named))
    if filters.workloads or filters.tasks:
        chosen = select(WORKLOAD.c.workload_id)
        if filters.workloads:
            chosen = chosen.where(WORKLOAD.c.name.in_(filters.workloads))
        if filters.tasks:
            chosen = chosen.where(WORKLOAD.c.task.in_(filters.tasks))
        conditions.append(SERIES.c.workload_id.in_(chosen))
    return conditions


def oldest_first() -> tuple[Column[object], Column[object]]:
    """By start; trials that started together keep the order of their ids."""
    return TRIAL.c.started_at, TRIAL.c.trial_id


# Columns of the tables as they are read into frames.

Columns = Mapping[str, tuple[ColumnElement[Any], str]]
"""Name in the frame -> the column that is read, and the dtype it gets."""

CASES = (
    SERIES.join(MACHINE, MACHINE.c.machine_id == SERIES.c.machine_id)
    .join(WORKLOAD, WORKLOAD.c.workload_id == SERIES.c.workload_id)
    .join(STRATEGY, STRATEGY.c.strategy_id == SERIES.c.strategy_id)
)
"""Every series beside its machine, workload and strategy."""


def plain(column: ColumnElement[Any], dtype: str) -> ColumnElement[Any]:
    """`column`, and where text is wanted the text of an enum, not its members."""
    return type_coerce(column, String) if dtype == "str" else column


def selected(columns: Columns) -> list[ColumnElement[Any]]:
    """What to select, in the order of `columns`."""
    return [plain(column, dtype) for column, dtype in columns.values()]


def dtypes(columns: Columns) -> dict[str, str]:
    """Name -> dtype, as `db.queries.frames.frame_of` takes them."""
    return {name: dtype for name, (_, dtype) in columns.items()}
