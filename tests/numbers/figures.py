"""Figures as doors tell them, and whether they tell the same."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from dashboard.parts.column_units import Quantity
from db.units import MISSING
from tests.numbers.page_numbers import DIGITS, value

Case = tuple[str, ...]
Value = float | str | None

EXACT = 1e-9
"""How far two numbers of documents may differ, as a share."""
NEAR_ZERO = 5e-5
"""What a text rounds to nothing."""


class Figure(NamedTuple):
    """One figure as one door tells it: a number in the base of its unit, a word, or None where it is missing.

    `selection` is of what: a build on a machine, two sides of a comparison, a trial. `written` figures were
    read from a text, and have the digits that it shows.
    """

    quantity: str
    case: Case
    selection: Case
    door: str
    value: Value
    written: bool = False

    def __str__(self) -> str:
        of = " ".join((*self.case, "of", *self.selection))
        return f"{self.quantity} of {of}: {self.door} says {self.value}"


def read(text: object) -> Value:
    """What a cell shows: a number, a word, or nothing."""
    if not isinstance(text, str):
        return number(text)
    shown = value(text)
    if shown is not None:
        return shown
    return None if text in ("", MISSING) else text.replace("_", " ")


def number(cell: Any) -> Value:
    """A cell of a frame or a document."""
    cell = cell.value if isinstance(cell, Quantity) else cell
    if isinstance(cell, str) or cell is None or pd.isna(cell):
        return cell.replace("_", " ") if isinstance(cell, str) else None
    return float(cell)


def contradictions(figures: Iterable[Figure]) -> list[str]:
    """A line for each quantity that two doors tell differently, to the digits that they show."""
    told: Mapping[tuple[str, Case, Case], list[Figure]] = defaultdict(list)
    for figure in figures:
        told[figure[:3]].append(figure)
    return [line for each in told.values() for line in _differing(each)]


def _differing(figures: list[Figure]) -> Iterator[str]:
    """Each is held against the most exact of them."""
    first = min(figures, key=lambda each: each.written)
    for other in figures:
        if not _same(first, other):
            yield f"{first}, {other.door} {other.value}"
            return


def _same(one: Figure, other: Figure) -> bool:
    if isinstance(one.value, str | None) or isinstance(other.value, str | None):
        return one.value == other.value
    written = one.written or other.written
    return math.isclose(
        one.value, other.value, rel_tol=DIGITS if written else EXACT, abs_tol=NEAR_ZERO if written else 0.0
    )


_BY = r"(?: \([^)]*\))?"
_RARE = r"(?:, \d+ (?:set aside, machine|failing|missing))*"
TALLY = re.compile(rf"\d+ slower{_BY}, \d+ faster{_BY}, \d+ unchanged, \d+ undecided{_RARE}")


def tallies(texts: Iterable[str], selection: Case, door: str) -> Iterator[Figure]:
    """The tally of a comparison, in the one way in which it is written."""
    for text in texts:
        for found in TALLY.finditer(text):
            yield Figure("tally", (), selection, door, found[0])
