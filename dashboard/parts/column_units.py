"""Units of columns: numbers as they stand on a screen, in a report and in a file.

A frame holds raw numbers, so that a screen sorts them and a file has them. A screen has one unit a column,
the largest in which the middle value is at least 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS


@dataclass(frozen=True)
class UnitCell:
    """A cell of a column whose rows have units of their own: a raw number in `unit`, or a word."""

    value: float | str | None
    unit: str


class SidesCell(NamedTuple):
    """A cell with a raw number of base and one of head."""

    base: float
    head: float


@dataclass(frozen=True)
class Unit:
    """`raw` is that of the numbers in a frame, empty for plain ones; `write` makes a text of one. A screen
    has them in one of `scales`, name and factor, as `form` says; `write_end` makes a text of an end of an
    interval where the title says the unit. What is smaller than `least` is shown as nothing.
    """

    raw: str
    write: Callable[[Any], str]
    scales: tuple[tuple[str, float], ...] = (("", 1.0),)
    form: str = "%.3g"
    write_end: Callable[[Any], str] | None = None
    least: float = 0.0


_FAR_SMALLER = 100
# A smaller change is told as none.
_LEAST_CHANGE = 5e-5


def _change(fraction: Any) -> str:
    return units.percent(fraction if abs(fraction) >= _LEAST_CHANGE else 0, signed=True)


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
    "change": Unit("fraction", _change, (("%", 0.01),), "%+.3g", least=_LEAST_CHANGE),
    "share": Unit("fraction", units.percent, (("%", 0.01),)),
    "percent": Unit("percent", lambda value: units.percent(value / 100), (("%", 1.0),)),
    "J": Unit("J", units.energy, (("mJ", 1e-3), ("J", 1.0), ("kJ", 1e3))),
    "1/s": Unit("1/s", units.significant, (("1/s", 1.0),)),
    "count": Unit("", units.count, form="localized"),
    "steps": Unit("steps", units.steps, (("steps", 1.0),), "localized", units.count),
    "money": Unit("$", units.money, (("$", 1.0),)),
}


def unit_of(metric: str) -> str:
    """The key in `UNITS` of what a metric is in; that of one in words is none of them."""
    unit = METRICS[metric].unit
    return "ratio" if unit == "x" else unit


def quantity(metric: str, value: float | str | None) -> UnitCell:
    """`value` of `metric` as a cell."""
    return UnitCell(units.words(value) if isinstance(value, str) else value, unit_of(metric))


def numbers_of(values: pd.Series) -> pd.Series:
    """The numbers of a column as floats, what is missing or no number as NaN."""
    return pd.to_numeric(values, errors="coerce").astype("Float64").astype("float64")


def scale_of(unit: Unit, values: pd.Series) -> tuple[str, float]:
    """Name and factor of the unit in which a screen has these raw numbers; no name where there is none."""
    sizes = numbers_of(values).abs().dropna()
    if sizes.empty:
        return "", 1.0
    middle = float(sizes[sizes > 0].median()) if (sizes > 0).any() else np.nan
    return next((scale for scale in reversed(unit.scales) if middle >= scale[1]), unit.scales[0])


def form_of(unit: Unit, values: pd.Series) -> str:
    """How a screen writes these raw numbers: all with the decimals that the middle one has at three digits,
    to align; where some are far smaller than that one, each with three significant digits.
    """
    sizes = numbers_of(values).abs()
    sizes = sizes[sizes > max(unit.least, 0.0)] / scale_of(unit, values)[1]
    if not unit.form.endswith(".3g") or sizes.empty or sizes.min() * _FAR_SMALLER < sizes.median():
        return unit.form
    decimals = max(0, 2 - math.floor(math.log10(sizes.median())))
    return unit.form.replace(".3g", f".{decimals}f")


def in_form(form: str, number: float) -> str:
    """`number` in a form of printf as `form_of` has it, with a real minus, a mark between thousands and no
    exponent; nothing has no sign.
    """
    sign = "+" if form.startswith("%+") and number > 0 else ""
    if form.endswith("g"):
        return f"{sign}{units.significant(number)}"
    decimals = form.partition(".")[2].removesuffix("f")
    return f"{sign}{number:,.{decimals}f}".replace("-", units.MINUS)


def written(value: Any, unit: Unit) -> str:
    """A cell as text: a number, both ends of an interval, or a word that stands for one."""
    if isinstance(value, UnitCell):
        return value.value if isinstance(value.value, str) else written(value.value, UNITS[value.unit])
    if isinstance(value, str):
        return value
    if isinstance(value, SidesCell):
        return " + ".join(map(unit.write, value))
    if isinstance(value, tuple):
        ends: list[Any] = [None if pd.isna(end) else end for end in value]
        return units.interval(ends[0], ends[1], unit.write_end or unit.write)
    return units.MISSING if value is None or pd.isna(value) else unit.write(value)
