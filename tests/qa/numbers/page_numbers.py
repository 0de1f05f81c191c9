"""The numbers that a page shows, read back from its parts."""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd

from compilewatch.dashboard.document.sections import cell_text
from compilewatch.dashboard.parts.column_units import UNITS as UNITS_OF_COLUMNS
from compilewatch.dashboard.parts.column_units import UnitCell, written
from compilewatch.dashboard.parts.parts import Chart, Figures, PageContent, Pairs, Table, TableColumn, flat

UNITS = {
    **{"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9},
    **{"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
    **{"x": 1.0, "%": 0.01, "steps": 1.0, "step": 1.0, "": 1.0},
}
DIGITS = 0.006
"""Half a unit in the third of three significant digits, as a share of the smallest such number, and a bit."""


_NUMBER = re.compile(r"([+\u2212-]?[\d,]+(?:\.\d+)?)\s*([^\d\s.]*)")


def value(text: Any) -> float | None:
    """The number that a text shows, in the base of its unit; None where it shows none."""
    if not isinstance(text, str):
        return None
    found = _NUMBER.fullmatch(text)
    if found is None or found[2] not in UNITS:
        return None
    return float(found[1].replace(",", "").replace("\N{MINUS SIGN}", "-")) * UNITS[found[2]]


class Shown(float):
    """A number read from a text; it is up to `half` a unit of its last digit from what it rounds."""

    half: float

    def __new__(cls, value: float, half: float) -> Shown:
        shown = super().__new__(cls, value)
        shown.half = half
        return shown


def shown(text: str) -> Shown | None:
    """`value` of a text, with the digits that it shows."""
    number, found = value(text), _NUMBER.fullmatch(text)
    if number is None or found is None:
        return None
    decimals = len(found[1].partition(".")[2])
    return Shown(number, UNITS[found[2]] * 10.0**-decimals / 2)


def agree(shown: float, quotient: float) -> bool:
    """Up to the digits that all three numbers show."""
    return math.isclose(shown, quotient, rel_tol=3 * DIGITS)


def tables(page: PageContent) -> dict[str, pd.DataFrame]:
    """By key, each number written as a report has it."""
    found = [part for part in flat((*page.parts, *page.appendix())) if isinstance(part, Table)]
    return {part.key: _written(part) for part in found}


def _written(table: Table) -> pd.DataFrame:
    return table.frame.assign(
        **{
            name: [_text(value, column) for value in table.frame[name]]
            for name, column in table.columns.items()
            if name in table.frame and (column.unit or name in ("base", "head"))
        }
    )


def _text(value: Any, column: TableColumn) -> str:
    """As it is shown; a cell may have a unit of its own."""
    return (
        written(value, UNITS_OF_COLUMNS["count"]) if isinstance(value, UnitCell) else cell_text(value, column)
    )


def charts(page: PageContent) -> dict[str, dict[str, pd.DataFrame]]:
    return {part.key: part.chart.frames for part in flat(page.parts) if isinstance(part, Chart)}


def figures(page: PageContent) -> dict[str, str]:
    return {
        each.title: each.text
        for part in flat(page.parts)
        if isinstance(part, Figures)
        for each in part.figures
    }


def pairs(page: PageContent, title: str) -> dict[str, str | None]:
    found = (part.pairs for part in flat(page.parts) if isinstance(part, Pairs) and part.title == title)
    return dict(next(found, {}))


def first_numbers(text: str) -> list[int]:
    """The whole numbers of a sentence."""
    return [int(number.replace(",", "")) for number in re.findall(r"\b\d[\d,]*", text)]


def rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return frame.to_dict("records")
