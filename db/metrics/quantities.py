"""What goes into a formula: finite times, and values of one machine and workload alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from pandas import DataFrame

from compilewatch.db.errors import UnitError
from compilewatch.db.units import words


def nanoseconds(value: float | Fraction) -> Fraction:
    """A time that is calculated with exactly. Raises UnitError for a value that is not finite."""
    if not math.isfinite(value):
        raise UnitError(f"{value} is no measurement.", "Leave out what is missing.")
    return Fraction(value)


def require_one(frame: DataFrame, columns: tuple[str, ...], purpose: str) -> None:
    """Raises UnitError when `frame` mixes several values in one of `columns`; an empty frame passes."""
    for column in columns:
        require_same(column, frame[column].dropna().unique(), purpose)


def require_same(column: str, values: Iterable[object], purpose: str) -> None:
    """Raises UnitError when `values`, of `column` and none of them missing, differ; no values pass."""
    distinct = sorted({str(value) for value in values})
    if len(distinct) > 1:
        raise UnitError(
            f"{purpose} cannot mix several values of {words(column)}: {', '.join(distinct[:3])}.",
            f"Choose one {column.removesuffix('_id')}.",
        )
