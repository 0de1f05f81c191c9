"""Rows as tidy DataFrames with one fixed type per column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

MOMENT = "datetime64[us, UTC]"


def frame_of(rows: Sequence[Sequence[Any]], columns: Mapping[str, str]) -> pd.DataFrame:
    """A frame with `columns` (name to pandas dtype) of rows in the same order; no rows give an empty frame.

    Numbers are of nullable types: what is missing is NA.
    """
    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    # Of arrays, which have no index to be brought into line.
    return pd.DataFrame(
        {
            name: pd.Series(list(column), dtype=dtype).array
            for (name, dtype), column in zip(columns.items(), values, strict=True)
        }
    )


def matched(table: pd.DataFrame, key: str, wanted: pd.Series) -> pd.DataFrame:
    """The row of `table` for each wanted key, in that order, with a fresh index and without the key."""
    keyed = table.set_index(key)
    found: pd.DataFrame = keyed.take(keyed.index.get_indexer(pd.Index(wanted))).reset_index(drop=True)
    return found
