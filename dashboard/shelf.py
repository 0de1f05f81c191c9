"""Rows that are read or made once and kept: the next look makes anew only what changed since."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from threading import Lock
from typing import Generic, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Key = TypeVar("Key", bound=Hashable)

SPARE_ROWS = 30_000
"""So many rows that the last look did not ask for stay, since the next one may."""


class Shelf(Generic[Key]):
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
            changed = [key for key, stamp in wanted.items() if self._stamps.get(key) != stamp]
            if changed or self._frame is None:
                self._replace(changed, make)
                self._stamps |= {key: wanted[key] for key in changed}
            return self._rows_of(wanted)

    def _replace(
        self, changed: Sequence[Key], make: Callable[[Sequence[Key]], tuple[pd.DataFrame, Sequence[Key]]]
    ) -> None:
        made, keys = make(changed)
        for key in changed:
            self._numbers.setdefault(key, len(self._numbers))
        numbers = np.fromiter((self._numbers[key] for key in keys), dtype=np.int64, count=len(made))
        if self._frame is None:
            self._keep(made, numbers)
            return
        stale = self._chosen(changed)
        if stale.any():
            self._frame, self._number_of_row = rows_where(self._frame, ~stale), self._number_of_row[~stale]
        if made.empty:
            self._keep(self._frame, self._number_of_row)
        elif self._frame.empty:
            self._keep(made, numbers)
        else:
            self._keep(
                pd.concat([self._frame, made], ignore_index=True),
                np.concatenate([self._number_of_row, numbers]),
            )

    def _keep(self, frame: pd.DataFrame, numbers: NDArray[np.int64]) -> None:
        places = frame[self._order].reset_index(drop=True).sort_values(self._order, kind="stable").index
        positions = places.to_numpy(dtype=np.int64)
        if (np.diff(positions) < 0).any():
            frame, numbers = frame.take(positions), numbers[positions]
        self._frame, self._number_of_row = frame.reset_index(drop=True), numbers

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
            self._forget_all_but(wanted, rows, chosen)
        return rows

    def _forget_all_but(
        self, wanted: Mapping[Key, Hashable], rows: pd.DataFrame, chosen: NDArray[np.bool_]
    ) -> None:
        self._frame, self._number_of_row = rows, self._number_of_row[chosen]
        self._stamps = {key: stamp for key, stamp in self._stamps.items() if key in wanted}


def rows_where(frame: pd.DataFrame, chosen: NDArray[np.bool_]) -> pd.DataFrame:
    """The rows chosen; without a copy where they are one stretch, as tonight's or the newest runs are."""
    places = np.flatnonzero(chosen)
    if len(places) and places[-1] - places[0] + 1 == len(places):
        return frame.iloc[places[0] : places[-1] + 1]
    return frame.take(places)
