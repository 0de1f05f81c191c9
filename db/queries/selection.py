"""Filters as conditions on the trial table, rows as frames and records, and what trials share.

Rows as tidy DataFrames with one fixed type per column.

Which trials a question is about, as links and commands select them; `selection` makes SQL of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from pydantic import BaseModel
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    ColumnElement,
    Connection,
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

from compilewatch.db.columns.column import Holder
from compilewatch.db.columns.trial import TRIAL as COLUMNS_OF_TRIALS
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import BUILD, CONDITIONS, MACHINE, SERIES, STRATEGY, TRIAL, WORKLOAD
from compilewatch.db.metrics.frames import pandas_dtype
from compilewatch.db.records.trial import SourceKind, Status, Task


@dataclass(frozen=True)
class Filters:
    """A selection of trials; every field that is empty or None leaves its subject open.

    Workloads and strategies are selected by short name, machines and builds by identity id, `since` and
    `until` (both inclusive, aware) bound when the trial started.
    """

    workloads: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    statuses: tuple[Status, ...] = ()
    sources: tuple[SourceKind, ...] = ()

    def __post_init__(self) -> None:
        for name in ("since", "until"):
            moment = getattr(self, name)
            if moment is not None and moment.tzinfo is None:
                raise ValueError(f"{name} must carry a time zone")


MOMENT = "datetime64[us, UTC]"
_FLOAT, _INTEGER = pd.Float64Dtype(), pd.Int64Dtype()
_ROWS_AT_ONCE = 200


def frame_of(rows: Iterable[Sequence[Any]], columns: Mapping[str, str]) -> pd.DataFrame:
    """A frame with `columns` (name to pandas dtype) of rows in the same order; no rows give an empty frame.

    Numbers are of nullable types: what is missing is NA.
    """
    return pd.DataFrame(arrays_of(rows, columns), copy=False)


def arrays_of(rows: Iterable[Sequence[Any]], columns: Mapping[str, str]) -> dict[str, Any]:
    """The columns of `frame_of` as arrays, which have no index to be brought into line."""
    values: list[list[Any]] = [[] for _ in columns]
    each = iter(rows)
    # Thousands that are alive at once cost half as much again: the interpreter walks over all of them.
    while some := list(islice(each, _ROWS_AT_ONCE)):
        for column, more in zip(values, zip(*some, strict=True), strict=True):
            column.extend(more)
    return {
        name: _array(column, pandas_dtype(dtype))
        for (name, dtype), column in zip(columns.items(), values, strict=True)
    }


def _array(values: list[Any], dtype: Any) -> Any:
    if isinstance(dtype, np.dtype):
        # Objects may themselves be lists, and an array of such would have two dimensions.
        return pd.Series(values, dtype=dtype).array
    # Of few rows, most of what reading costs is that `pandas.array` asks each column what it might be.
    if dtype == _FLOAT:
        floats = np.array(values, dtype=np.float64)
        return pd.arrays.FloatingArray(floats, np.isnan(floats))
    if dtype == _INTEGER:
        missing = np.array([value is None for value in values], dtype=np.bool_)
        known = [1 if value is None else value for value in values]
        return pd.arrays.IntegerArray(np.array(known, dtype=np.int64), missing)
    return pd.array(values, dtype=dtype)


def matched(table: Mapping[str, Any], key: str, wanted: Sequence[str]) -> dict[str, Any]:
    """The columns of `table` but its key, with a row for each wanted key in that order.

    Raises KeyError for a key that `table` lacks.
    """
    place = {each: number for number, each in enumerate(table[key].tolist())}
    places = np.array([place[each] for each in wanted], dtype=np.intp)
    return {name: column.take(places) for name, column in table.items() if name != key}


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
    """Name -> dtype of what `statement` selects, as `db.queries.selection.frame_of` takes them."""
    return {str(column.key): _dtype(column) for column in statement.selected_columns}


def read_records(db: Database, model: type[_Record], statement: Select[Any]) -> list[_Record]:
    """The rows of `statement` as what was stored, in a transaction of its own."""
    return [model.model_validate(dict(row._mapping)) for row in db.rows(statement)]


def read_frame(db: Database, statement: Select[Any]) -> pd.DataFrame:
    """The rows of `statement`, in a transaction of its own."""
    return frame_of(db.rows(statement), dtypes(statement))


_MOST_NAMED = 2_000


def _held(holder: Holder, table: Table) -> list[ColumnElement[Any]]:
    names = {each.column: each.at for each in COLUMNS_OF_TRIALS if each.holder is holder}
    return selected(table, **names)


_SERIES = select(
    *selected(SERIES, "series_id"),
    *_held(Holder.SERIES, SERIES),
    *_held(Holder.MACHINE, MACHINE),
    *_held(Holder.WORKLOAD, WORKLOAD),
    *_held(Holder.STRATEGY, STRATEGY),
).select_from(CASES)
_BUILDS = select(*selected(BUILD, "build_id"), *_held(Holder.BUILD, BUILD))
_SERIES_DTYPES, _BUILDS_DTYPES = dtypes(_SERIES), dtypes(_BUILDS)
_CONDITIONS = select(*selected(CONDITIONS, "conditions_id"), *_held(Holder.CONDITIONS, CONDITIONS))


def of_series(connection: Connection, filters: Filters, series_ids: Sequence[str]) -> dict[str, Any]:
    """The columns of machine, workload and strategy, a row for each of `series_ids`, which are among those
    that `filters` let through.
    """
    wanted = list(dict.fromkeys(series_ids))
    these = [SERIES.c.series_id.in_(wanted)] if len(wanted) <= _MOST_NAMED else matching_series(filters)
    found = arrays_of(connection.execute(_SERIES.where(*these)), _SERIES_DTYPES)
    return matched(found, "series_id", series_ids)


def of_builds(connection: Connection, build_ids: Sequence[str]) -> dict[str, Any]:
    """The columns of a build, a row for each of `build_ids`."""
    these = _named(BUILD.c.build_id, build_ids)
    found = arrays_of(connection.execute(_BUILDS.where(*these)), _BUILDS_DTYPES)
    return matched(found, "build_id", build_ids)


def of_conditions(connection: Connection, conditions_ids: Sequence[str | None]) -> dict[str, Any]:
    """The settings, a row for each of `conditions_ids`, one object for all that share them."""
    these = _named(CONDITIONS.c.conditions_id, filter(None, conditions_ids))
    settings: dict[str | None, dict[str, Any]] = dict(connection.execute(_CONDITIONS.where(*these)).all())
    nothing: dict[str, Any] = {}
    return {
        "settings": pd.Series([settings.get(each, nothing) for each in conditions_ids], dtype="object").array
    }


def _named(key: ColumnElement[Any], ids: Iterable[str | None]) -> list[ColumnElement[bool]]:
    """All rows where they are too many to name."""
    wanted = list(dict.fromkeys(ids))
    return [key.in_(wanted)] if len(wanted) <= _MOST_NAMED else []
