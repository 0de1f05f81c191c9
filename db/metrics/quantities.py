"""Times that know what they were measured on, so that no formula mixes machines or workloads."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Rational
from typing import NamedTuple

from pandas import DataFrame

from db.errors import UnitError
from db.units import words


class Subject(NamedTuple):
    """What must be the same before two measurements meet in one formula."""

    machine_id: str
    workload_id: str

    def __str__(self) -> str:
        return f"workload {self.workload_id} on machine {self.machine_id}"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A time in nanoseconds with, where known, its subject. Arithmetic is exact (rational numbers).

    Adding or subtracting quantities of different known subjects raises UnitError, and so does a plain number.
    """

    value: Fraction
    subject: Subject | None = None

    def _shared_subject(self, other: Quantity) -> Subject | None:
        if not isinstance(other, Quantity):
            raise UnitError("ns cannot meet a plain number.", "Give the number its unit.")
        if self.subject is not None and other.subject is not None and self.subject != other.subject:
            raise UnitError(
                f"Measurements of {self.subject} and of {other.subject} cannot meet in one formula.",
                "Compare the same workload on the same machine.",
            )
        return self.subject if self.subject is not None else other.subject

    def __add__(self, other: Quantity) -> Quantity:
        subject = self._shared_subject(other)
        return Quantity(self.value + other.value, subject)

    def __sub__(self, other: Quantity) -> Quantity:
        subject = self._shared_subject(other)
        return Quantity(self.value - other.value, subject)

    def __mul__(self, times: int | Fraction) -> Quantity:
        if not isinstance(times, Rational):
            raise UnitError("A quantity can only be multiplied by a whole number or a fraction.", "")
        return replace(self, value=self.value * times)

    __rmul__ = __mul__


def nanoseconds(value: float | Fraction, subject: Subject | None = None) -> Quantity:
    """A time. Raises UnitError for a value that is not finite."""
    if not math.isfinite(value):
        raise UnitError(f"{value} is no measurement.", "Leave out what is missing.")
    return Quantity(Fraction(value), subject)


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
