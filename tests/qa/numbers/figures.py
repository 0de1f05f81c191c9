"""Figures as doors tell them, and whether they tell the same."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from compilewatch.dashboard.parts.column_units import UnitCell
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.units import MISSING
from tests.qa.numbers.page_numbers import Shown, shown

Case = tuple[str, ...]
Value = float | str | None

EXACT = 1e-9
"""How far two numbers of documents may differ, as a share of them or of 1: the last digits of a float."""


class Figure(NamedTuple):
    """One figure as one door tells it: a number in the base of its unit, a word, or None where it is missing.

    `selection` is of what: a build on a machine, two sides of a comparison, a trial.
    """

    quantity: str
    case: Case
    selection: Case
    door: str
    value: Value

    def __str__(self) -> str:
        of = " ".join((*self.case, "of", *self.selection))
        return f"{self.quantity} of {of}: {self.door} says {self.value}"


def read(text: object) -> Value:
    """What a cell shows: a number, a word, or nothing."""
    if not isinstance(text, str):
        return number(text)
    found = shown(text)
    if found is not None:
        return found
    return None if text in ("", MISSING) else text.replace("_", " ")


def number(cell: Any) -> Value:
    """A cell of a frame or a document."""
    cell = cell.value if isinstance(cell, UnitCell) else cell
    if isinstance(cell, str) or cell is None or pd.isna(cell):
        return cell.replace("_", " ") if isinstance(cell, str) else None
    return float(cell)


def of_which(cases: Iterable[Case], selection: Case, door: str) -> Figure:
    """Which compiled cases a door tells of."""
    return Figure(
        "cases",
        (),
        selection,
        door,
        ", ".join(sorted(" ".join(each) for each in cases if each[1] != "eager")),
    )


def contradictions(figures: Iterable[Figure]) -> list[str]:
    """A line for each quantity that two doors tell differently, to the digits that they show."""
    told: Mapping[tuple[str, Case, Case], list[Figure]] = defaultdict(list)
    for figure in figures:
        told[figure[:3]].append(figure)
    return [line for each in told.values() for line in _differing(each)]


def _differing(figures: list[Figure]) -> Iterator[str]:
    """Each is held against the most exact of them."""
    first = min(figures, key=lambda each: isinstance(each.value, Shown))
    for other in figures:
        if not _same(first.value, other.value):
            yield f"{first}, {other.door} {other.value}"
            return


def _same(one: Value, other: Value) -> bool:
    if isinstance(one, str | None) or isinstance(other, str | None):
        return one == other
    digits = sum(each.half for each in (one, other) if isinstance(each, Shown))
    return abs(one - other) <= digits + EXACT * max(1.0, abs(one))


_RARE = r"(?:, \d+ (?:set aside, machine|failing|missing))*"
_METRIC = "|".join(
    re.escape(each.word) for each in sorted(METRICS.values(), key=lambda each: -len(each.word))
)
TALLY = re.compile(
    rf"\b({_METRIC}) (\d+ slower, \d+ faster, \d+ unchanged, \d+ undecided{_RARE})", re.IGNORECASE
)


def tallies(texts: Iterable[str], selection: Case, door: str, metric: str = "latency") -> Iterator[Figure]:
    """The tally of a comparison in a metric, in the one way in which it is written; None where a door says
    none.
    """
    found = [each for text in texts for each in TALLY.findall(text)]
    for word, counted in found or [(metric, None)]:
        yield Figure(f"tally in {word.lower()}", (), selection, door, counted)


_STEPS = re.compile(r"[\d,]+ changes? in [\d,]+ series over [\d,]+ runs? on [\w-]+")


def steps_told(texts: Iterable[str], machine: str, door: str) -> Iterator[Figure]:
    """How many steps the history of a machine shows; None where a door does not say."""
    found = [each for text in texts for each in _STEPS.findall(text)]
    yield from (Figure("steps", (), (machine,), door, each) for each in found or [None])
