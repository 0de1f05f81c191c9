"""Frames with the columns and types of a table of columns."""

from __future__ import annotations

from collections.abc import Mapping
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
    return DataFrame(typed_arrays(values, columns))


def typed_arrays(values: Mapping[str, object], columns: dict[str, str]) -> dict[str, Any]:
    """The columns of `typed_frame`, each by itself."""
    return {name: _typed(values[name], pandas_dtype(dtype)) for name, dtype in columns.items()}


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
        # The greatest integer is none among floats: as one it would be beyond itself.
        values = np.clip(values, -_GREATEST, _GREATEST)
    is_typed = isinstance(values, ExtensionArray) and values.dtype == dtype
    return values if is_typed else pd.array(values, dtype=dtype)
