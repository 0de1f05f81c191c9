"""Small histories in the rows of a table, drawn so that noise looks like noise."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

import pandas as pd

# A history that strays less than this from its median is as good as flat.
_FLATTEST = 0.1

EXPLAINED = "Against its own median; all rows are drawn to one scale."


def relative(histories: Iterable[Sequence[float]]) -> tuple[pd.Series, float]:
    """Each history as shares of its own median, and how far from 1 a drawing of all must reach."""
    shares = [_of_median(history) for history in histories]
    strays = [abs(end - 1) for history in shares if history for end in (min(history), max(history))]
    return pd.Series(shares, dtype=object), max([_FLATTEST, *strays]) * 1.05


def _of_median(history: Sequence[float]) -> list[float]:
    middle = statistics.median(history) if len(history) > 1 else 0.0  # one run is no history
    return [value / middle for value in history] if middle else []
