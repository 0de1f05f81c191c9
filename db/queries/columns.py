"""Columns of the tables as they are read into frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, String, type_coerce

from db.tables import MACHINE, SERIES, STRATEGY, WORKLOAD

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
