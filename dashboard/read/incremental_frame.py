"""Rows that are read or made once and kept: the next look makes anew only what changed since."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from threading import Lock
from typing import Generic, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from db.metrics.groups import ranks

Key = TypeVar("Key", bound=Hashable)

SPARE_ROWS = 30_000
"""So many rows that the last look did not ask for stay, since the next one may."""
IDLE_READS = 100
"""Rows that so many looks in a row did not ask for go: those of runs that are no longer among the newest."""
_WORTH_FORGETTING = 0.1
MOST_PIECES = 64
"""Rows that join others leave one more piece of each column of text, which every look goes through."""


class IncrementalFrame(Generic[Key]):
    """Rows of one kind in one order, each under a key, with a stamp by key: what its rows were made of.

    Safe to share between threads. The frames it gives are shared too and must not be changed.
    """

    def __init__(self, order: Sequence[str]) -> None:
        """`order`: the columns by which rows are sorted; together they tell rows of one key set apart."""
        self._order = list(order)
        self._lock = Lock()
        self._stamps: dict[Key, Hashable] = {}
        self._numbers: dict[Key, int] = {}
        self._frame: pd.DataFrame | None = None
        self._number_of_row: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._joins = 0
        self._reads = 0
        self._last_read: dict[Key, int] = {}

    def take(
        self,
        wanted: Mapping[Key, Hashable],
        make: Callable[[Sequence[Key]], tuple[pd.DataFrame, Sequence[Key]]],
    ) -> pd.DataFrame:
        """The rows of the keys `wanted`, which are mapped to their stamps.

        `make` is asked for the rows of all keys whose stamp is another one than before, and returns them
        with the key of each row; it may return none for a key. It is always asked on the first look, so that
        columns and types are known.
        """
        with self._lock:
            changed = self._changed(wanted)
            if changed or self._frame is None:
                rows = make(changed)
                self._drop(changed)
                self._add(changed, *rows)
                self._stamps |= {key: wanted[key] for key in changed}
            return self._rows_of(wanted)

    def take_grown(
        self,
        wanted: Mapping[Key, Hashable],
        more: Callable[[Sequence[Key], pd.DataFrame | None], tuple[pd.DataFrame, Sequence[Key]]],
    ) -> pd.DataFrame:
        """As `take`, of rows that stay as they are once they are there: `more` is given those of the changed
        keys that are there, None on the first look, and returns the others.
        """
        with self._lock:
            changed = self._changed(wanted)
            if changed or self._frame is None:
                there = None if self._frame is None else rows_where(self._frame, self._chosen(changed))
                self._add(changed, *more(changed, there))
                self._stamps |= {key: wanted[key] for key in changed}
            return self._rows_of(wanted)

    def unchanged(self, wanted: Mapping[Key, Hashable]) -> pd.DataFrame | None:
        """The rows of the keys `wanted`, None unless all are here with these stamps."""
        with self._lock:
            if self._frame is None or any(self._stamps.get(key) != stamp for key, stamp in wanted.items()):
                return None
            return rows_where(self._frame, self._chosen(wanted))

    def _changed(self, wanted: Mapping[Key, Hashable]) -> list[Key]:
        self._reads += 1
        self._last_read |= dict.fromkeys(wanted, self._reads)
        return [key for key, stamp in wanted.items() if self._stamps.get(key) != stamp]

    def _drop(self, keys: Sequence[Key]) -> None:
        stale = self._chosen(keys)
        if self._frame is not None and stale.any():
            self._frame = rows_where(self._frame, ~stale).reset_index(drop=True)
            self._number_of_row = self._number_of_row[~stale]

    def _add(self, changed: Sequence[Key], rows: pd.DataFrame, keys: Sequence[Key]) -> None:
        for key in changed:
            self._numbers.setdefault(key, len(self._numbers))
        numbers = np.fromiter((self._numbers[key] for key in keys), dtype=np.int64, count=len(rows))
        rows, numbers = self._ordered(rows, numbers)
        if self._frame is None or self._frame.empty:
            self._frame, self._number_of_row = rows, numbers
        elif not rows.empty:
            follows = rows[self._order[0]].iloc[0] > self._frame[self._order[0]].iloc[-1]
            both = self._joined(self._frame, rows)
            of_both = np.concatenate([self._number_of_row, numbers])
            self._frame, self._number_of_row = (both, of_both) if follows else self._ordered(both, of_both)

    def _joined(self, frame: pd.DataFrame, more: pd.DataFrame) -> pd.DataFrame:
        both = pd.concat([frame, more], ignore_index=True)
        self._joins += 1
        return both if self._joins % MOST_PIECES else _in_one_piece(both)

    def _ordered(
        self, frame: pd.DataFrame, numbers: NDArray[np.int64]
    ) -> tuple[pd.DataFrame, NDArray[np.int64]]:
        if len(frame) > 1:
            places = np.lexsort([ranks(frame[name])[0] for name in reversed(self._order)])
            if (np.diff(places) < 0).any():
                frame, numbers = frame.take(places), numbers[places]
        return frame.reset_index(drop=True), numbers

    def _chosen(self, keys: Sequence[Key] | Mapping[Key, Hashable]) -> NDArray[np.bool_]:
        """A flag per row: whether it is of one of `keys`."""
        flags = np.zeros(len(self._numbers), dtype=np.bool_)
        flags[[self._numbers[key] for key in keys if key in self._numbers]] = True
        return flags[self._number_of_row]

    def _rows_of(self, wanted: Mapping[Key, Hashable]) -> pd.DataFrame:
        assert self._frame is not None
        chosen = self._chosen(wanted)
        if chosen.all():
            return self._frame
        rows = rows_where(self._frame, chosen).reset_index(drop=True)
        if len(self._frame) > 2 * len(rows) + SPARE_ROWS:
            self._restrict_to(list(wanted))
        else:
            self._forget_idle()
        return rows

    def _forget_idle(self) -> None:
        recent = [key for key, look in self._last_read.items() if look > self._reads - IDLE_READS]
        if len(recent) == len(self._last_read):
            return
        idle = len(self._number_of_row) - int(self._chosen(recent).sum())
        if idle >= _WORTH_FORGETTING * len(self._number_of_row):
            self._restrict_to(recent)

    def _restrict_to(self, keys: Sequence[Key]) -> None:
        assert self._frame is not None
        chosen = self._chosen(keys)
        numbers = {key: self._numbers[key] for key in keys if key in self._numbers}
        renumbered = np.zeros(len(self._numbers), dtype=np.int64)
        renumbered[list(numbers.values())] = np.arange(len(numbers))
        self._numbers = {key: int(renumbered[number]) for key, number in numbers.items()}
        self._frame = rows_where(self._frame, chosen).reset_index(drop=True)
        self._number_of_row = renumbered[self._number_of_row[chosen]]
        self._stamps = {key: self._stamps[key] for key in keys if key in self._stamps}
        self._last_read = {key: self._last_read[key] for key in keys}


def rows_where(frame: pd.DataFrame, chosen: NDArray[np.bool_]) -> pd.DataFrame:
    """The rows chosen; without a copy where they are one stretch, as tonight's or the newest runs are."""
    places = np.flatnonzero(chosen)
    if len(places) and places[-1] - places[0] + 1 == len(places):
        return frame.iloc[places[0] : places[-1] + 1]
    return frame.take(places)


def _in_one_piece(frame: pd.DataFrame) -> pd.DataFrame:
    every = np.arange(len(frame))
    return pd.DataFrame({name: column.array.take(every) for name, column in frame.items()}, copy=False)
