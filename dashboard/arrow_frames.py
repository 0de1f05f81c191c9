"""Frames in the form in which they are sent to browsers, made once for each that is shown again and again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any
from weakref import ref

import pandas as pd
import pyarrow as pa

from dashboard.foreign_text import readable_frame

_MOST_WITHOUT_ROWS = 100


class OfFrames:
    """What is made of frames, kept as long as they are there. Safe to share between threads.

    Frames that are shown must not be changed, so what was made of one stays true.
    """

    def __init__(self, make: Callable[..., Any]) -> None:
        """`make`: of a frame, and of what is passed beside it."""
        self._make = make
        self._kept: dict[int, tuple[ref[pd.DataFrame], dict[Hashable, Any]]] = {}
        self._without_rows: dict[Hashable, pd.DataFrame] = {}

    def of(self, frame: pd.DataFrame, *beside: Hashable) -> Any:
        """What `make` makes, now or when it was asked for first."""
        if not len(frame):
            frame = self._like(frame)
        key = id(frame)
        kept = self._kept.get(key)
        if kept is None or kept[0]() is not frame:
            kept = self._kept[key] = ref(frame, lambda _: self._kept.pop(key, None)), {}
        if beside not in kept[1]:
            kept[1][beside] = self._make(frame, *beside)
        return kept[1][beside]

    def _like(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The first frame without rows with the columns of `frame`: such are made anew time and again."""
        if len(self._without_rows) >= _MOST_WITHOUT_ROWS:
            self._without_rows.clear()
        alike = (type(frame.index), *frame.columns, *frame.dtypes)
        return self._without_rows.setdefault(alike, frame)


def _arrow(frame: pd.DataFrame) -> pa.Table | pd.DataFrame:
    try:
        return pa.Table.from_pandas(frame)
    except (pa.ArrowException, OverflowError):
        # Streamlit has its ways with columns of mixed kinds.
        return frame


def _chart_rows(frame: pd.DataFrame) -> pa.Table | pd.DataFrame:
    return _arrow(readable_frame(frame))


def _table_rows(frame: pd.DataFrame, columns: tuple[str, ...]) -> pa.Table | pd.DataFrame:
    return _arrow(frame[list(columns)])


CHART_ROWS = OfFrames(_chart_rows)
"""The rows of a chart with every text readable."""
TABLE_ROWS = OfFrames(_table_rows)
"""The rows of a table, of the columns that are named beside it."""
