"""Filters as conditions on the trial table."""

from __future__ import annotations

from sqlalchemy import Column, ColumnElement, select

from db.queries.filters import Filters
from db.tables import SERIES, STRATEGY, TRIAL, WORKLOAD


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
