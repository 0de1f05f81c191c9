"""Rows as tidy DataFrames with one fixed type per column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from compilewatch.db.metrics.frames import pandas_dtype

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
