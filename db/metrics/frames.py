"""Frames with the columns and types of a table of columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame
from pandas.api.extensions import ExtensionArray

_INTEGER = pd.Int64Dtype()
_GREATEST = np.nextafter(2.0**63, 0)


def empty_frame(columns: dict[str, str]) -> DataFrame:
    return DataFrame({name: pd.Series([], dtype=dtype) for name, dtype in columns.items()})


def typed_frame(values: Mapping[str, object], columns: dict[str, str]) -> DataFrame:
    """`values` by column, ordered and typed as `columns` says; NaN becomes a missing value.

    Raises KeyError where a column was forgotten.
    """
    # Column by column: of a whole frame, pandas asks for each of its ninety several times over.
    return DataFrame({name: _typed(values[name], pandas_dtype(dtype)) for name, dtype in columns.items()})


def plain_rows(values: Mapping[str, object], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows of `typed_frame` as plain values, None for a missing one: quicker for few rows."""
    plain = (_PLAIN[dtype](values[name]) for name, dtype in columns.items())
    return [dict(zip(columns, row, strict=True)) for row in zip(*plain, strict=True)]


def _texts(value: Any) -> list[str | None]:
    return [str(each) if isinstance(each, str) else None for each in _listed(value)]


def _floats(value: Any) -> list[float | None]:
    if isinstance(value, ExtensionArray):
        value = value.to_numpy(dtype=np.float64, na_value=np.nan)
    numbers = np.asarray(value, dtype=np.float64).tolist()
    return [None if math.isnan(each) else each for each in numbers]


def _integers(value: Any) -> list[int | None]:
    if isinstance(value, ExtensionArray):
        return [None if each is pd.NA else each for each in value.tolist()]
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return [None if math.isnan(each) else int(each) for each in _within(value).tolist()]
    return _listed(value)


def _flags(value: Any) -> list[bool]:
    return [bool(each) for each in _listed(value)]


def _moments(value: Any) -> list[datetime]:
    return [each.to_pydatetime() for each in value]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else list(value.tolist())


_PLAIN: dict[str, Callable[[Any], list[Any]]] = {
    **{"str": _texts, "Float64": _floats, "Int64": _integers, "bool": _flags},
    "datetime64[us, UTC]": _moments,
}


@cache
def pandas_dtype(name: str) -> Any:
    """The type of that name, for which pandas asks all the types it knows."""
    return pd.api.types.pandas_dtype(name)


def _typed(value: Any, dtype: Any) -> Any:
    if isinstance(value, list):
        # through objects: as floats, whole numbers beyond 2^53 would lose their last digits
        value = np.array(value, dtype=np.object_)
    values = value.array if isinstance(value, pd.Series) else value
    if dtype == _INTEGER and isinstance(values, np.ndarray) and values.dtype.kind == "f":
        values = _within(values)
    is_typed = isinstance(values, ExtensionArray) and values.dtype == dtype
    return values if is_typed else pd.array(values, dtype=dtype)


def _within(values: Any) -> Any:
    # The greatest integer is none among floats: as one it would be beyond itself.
    return np.clip(values, -_GREATEST, _GREATEST)


def with_plain_texts(frame: DataFrame) -> DataFrame:
    """The same rows with columns of text as objects: to cut a frame into hundreds of small ones, each column
    of a dtype of its own costs more than what it holds.
    """
    return frame.astype(dict.fromkeys(frame.select_dtypes("str").columns, object))
