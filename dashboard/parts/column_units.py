"""Units of columns: numbers as they stand on a screen, in a report and in a file.

A frame holds raw numbers, so that a screen sorts them and a file has them. A screen has one unit a column,
the largest in which the middle value is at least 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from db import units


@dataclass(frozen=True)
class Unit:
    """`raw` is that of the numbers in a frame, empty for plain ones; `write` makes a text of one. A screen
    has them in one of `scales`, name and factor, as `form` says; `write_end` makes a text of an end of an
    interval where the title says the unit.
    """

    raw: str
    write: Callable[[Any], str]
    scales: tuple[tuple[str, float], ...] = (("", 1.0),)
    form: str = "%.3g"
    write_end: Callable[[Any], str] | None = None


def _change(fraction: Any) -> str:
    return units.percent(fraction, signed=True)


UNITS = {
    "ns": Unit(
        "ns",
        units.duration,
        (("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)),
    ),
    "bytes": Unit(
        "bytes",
        units.size,
        (("B", 1.0), ("KiB", 2.0**10), ("MiB", 2.0**20), ("GiB", 2.0**30), ("TiB", 2.0**40)),
    ),
    "rate": Unit("per s", units.rate, (("per s", 1.0), ("thousand per s", 1e3), ("million per s", 1e6))),
    "ratio": Unit("x", units.ratio, (("x", 1.0),)),
    "change": Unit("fraction", _change, (("%", 0.01),), "%+.3g"),
    "count": Unit("", units.count, form="localized"),
    "steps": Unit("steps", units.steps, (("steps", 1.0),), "localized", units.count),
    "money": Unit("$", units.money, (("$", 1.0),)),
}


def numbers_of(values: pd.Series) -> pd.Series:
    """The numbers of a column as floats, what is missing or no number as NaN."""
    return pd.to_numeric(values, errors="coerce").astype("Float64").astype("float64")


def scale_of(unit: Unit, values: pd.Series) -> tuple[str, float]:
    """Name and factor of the unit in which a screen has these raw numbers."""
    sizes = numbers_of(values).abs()
    middle = float(sizes[sizes > 0].median()) if (sizes > 0).any() else np.nan
    return next((scale for scale in reversed(unit.scales) if middle >= scale[1]), unit.scales[0])


def written(value: Any, unit: Unit) -> str:
    """A cell as text: a number, both ends of an interval, or a word that stands for one."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        ends: list[Any] = [None if pd.isna(end) else end for end in value]
        return units.interval(ends[0], ends[1], unit.write_end or unit.write)
    return units.MISSING if value is None or pd.isna(value) else unit.write(value)
