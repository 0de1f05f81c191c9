"""Filters as conditions on the trial table, and rows as frames and records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import pandas as pd
from pydantic import BaseModel
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    ColumnElement,
    DateTime,
    Float,
    Integer,
    Select,
    String,
    Table,
    TypeDecorator,
    select,
    type_coerce,
)
from sqlalchemy.types import TypeEngine

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.frames import MOMENT, frame_of
from compilewatch.db.tables.trials import MACHINE, SERIES, STRATEGY, TRIAL, WORKLOAD


def matching(filters: Filters) -> list[ColumnElement[bool]]:
    """Conditions on `trial` that all hold for exactly the trials selected."""
    conditions = matching_trials(filters)
    series = matching_series(filters)
    if series:
        conditions.append(TRIAL.c.series_id.in_(select(SERIES.c.series_id).where(*series)))
    return conditions


def matching_trials(filters: Filters) -> list[ColumnElement[bool]]:
    """Conditions on `trial` by what is each trial's own; empty where all trials of the series match."""
    conditions = any_of(
        (TRIAL.c.build_id, filters.builds),
        (TRIAL.c.run_id, filters.runs),
        (TRIAL.c.suite, filters.suites),
        (TRIAL.c.status, filters.statuses),
        (TRIAL.c.source_kind, filters.sources),
    )
    if filters.since is not None:
        conditions.append(TRIAL.c.started_at >= filters.since)
    if filters.until is not None:
        conditions.append(TRIAL.c.started_at <= filters.until)
    return conditions


def matching_series(filters: Filters) -> list[ColumnElement[bool]]:
    """Conditions on `series` by machine, workload, strategy and task; empty where all series match."""
    conditions = any_of((SERIES.c.machine_id, filters.machines))
    if named := any_of((STRATEGY.c.name, filters.strategies)):
        conditions.append(SERIES.c.strategy_id.in_(select(STRATEGY.c.strategy_id).where(*named)))
    if chosen := any_of((WORKLOAD.c.name, filters.workloads), (WORKLOAD.c.task, filters.tasks)):
        conditions.append(SERIES.c.workload_id.in_(select(WORKLOAD.c.workload_id).where(*chosen)))
    return conditions


def any_of(*choices: tuple[Column[Any], Sequence[Any]]) -> list[ColumnElement[bool]]:
    """For each column that it has one of these values; without any it is left open."""
    return [column.in_(values) for column, values in choices if values]


def oldest_first() -> tuple[Column[object], Column[object]]:
    """By start; trials that started together keep the order of their ids."""
    return TRIAL.c.started_at, TRIAL.c.trial_id


CASES = (
    SERIES.join(MACHINE, MACHINE.c.machine_id == SERIES.c.machine_id)
    .join(WORKLOAD, WORKLOAD.c.workload_id == SERIES.c.workload_id)
    .join(STRATEGY, STRATEGY.c.strategy_id == SERIES.c.strategy_id)
)
"""Every series beside its machine, workload and strategy."""

_Record = TypeVar("_Record", bound=BaseModel)

# What is selected, as it is read into frames: the types of columns tell those of the frame.

_DTYPES: tuple[tuple[type, str], ...] = (
    *((Boolean, "boolean"), (Integer, "Int64"), (Float, "Float64"), (JSON, "object")),
    *((DateTime, MOMENT), (String, "str")),
)


def _dtype(column: ColumnElement[Any]) -> str:
    kind = column.type.impl if isinstance(column.type, TypeDecorator) else column.type
    return next(dtype for of_table, dtype in _DTYPES if isinstance(kind, of_table))


_PLAIN: dict[str, TypeEngine[Any]] = {"str": String(), MOMENT: DateTime(timezone=True)}


def plain(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """`column` for frames: of text and enums the text as it is stored, of moments what the driver gives, on
    SQLite in UTC without saying so. What is spared is a call in Python for every value.
    """
    known = _PLAIN.get(_dtype(column))
    return column if known is None else type_coerce(column, known)


def selected(table: Table, *names: str, **renamed: str) -> list[ColumnElement[Any]]:
    """These columns of `table` as they are selected; of `renamed` ones by the names that a frame has."""
    columns = {**{name: name for name in names}, **renamed}
    return [plain(table.c[name]).label(shown) for shown, name in columns.items()]


def dtypes(statement: Select[Any]) -> dict[str, str]:
    """Name -> dtype of what `statement` selects, as `db.queries.frames.frame_of` takes them."""
    return {str(column.key): _dtype(column) for column in statement.selected_columns}


def read_records(db: Database, model: type[_Record], statement: Select[Any]) -> list[_Record]:
    """The rows of `statement` as what was stored, in a transaction of its own."""
    return [model.model_validate(dict(row._mapping)) for row in db.rows(statement)]


def read_frame(db: Database, statement: Select[Any]) -> pd.DataFrame:
    """The rows of `statement`, in a transaction of its own."""
    return frame_of(db.rows(statement), dtypes(statement))
