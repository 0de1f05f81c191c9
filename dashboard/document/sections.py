"""The parts of a page as the sections of a frozen report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from compilewatch.dashboard.document.content import Chart, Figures, FrozenColumn, Lines, Section, Table
from compilewatch.dashboard.document.svg import NARROW_PX, draw
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.column_units import UNITS, UnitCell, written
from compilewatch.dashboard.parts.parts import Part
from compilewatch.dashboard.text.foreign_text import unticked
from compilewatch.db import units

MOST_ROWS = 250
_NUMBERS = ("number", "share")


def sections(described: Iterable[Part], *, narrow: bool = False) -> tuple[Section, ...]:
    """The parts of a page as those of a report: charts drawn, cells written, what has no data said.

    With `narrow` a chart is there for a phone as well.
    """
    return tuple(section for part in parts.flat(described) for section in _sections(part, narrow=narrow))


def _sections(part: Part, *, narrow: bool) -> tuple[Section, ...]:
    match part:
        case parts.PageHeadline():
            section: Section = Lines(lines=(part.text,))
        case parts.Lines():
            section = Lines(title=part.title, lines=part.lines, listed=part.listed, code=part.code)
        case parts.Empty():
            section = Lines(lines=(f"{part.reason} {part.next_step}".strip(),))
        case parts.Badges():
            section = Lines(lines=(", ".join(badge.text for badge in part.badges),))
        case parts.Figures():
            section = Figures(figures=tuple((each.title, _figure(each)) for each in part.figures))
        case parts.Table():
            section = table(part)
        case parts.Pairs():
            return _pairs(part)
        case parts.Group() | parts.Folded():
            return sections((part,), narrow=narrow)
        case parts.Chart():
            section = _chart(part, narrow=narrow)
    return (section,)


def _figure(figure: parts.Figure) -> str:
    return f"{figure.text}, {figure.beside}" if figure.beside else figure.text


def _pairs(part: parts.Pairs) -> tuple[Section, ...]:
    """Names and texts, those that are known."""
    rows = tuple((name, text) for name, text in part.pairs.items() if text and text != units.MISSING)
    columns = (FrozenColumn(title="What"), FrozenColumn(title="Value"))
    return (Table(title=part.title, columns=columns, rows=rows, note=part.note),) if rows else ()


def _chart(part: parts.Chart, *, narrow: bool) -> Section:
    """What it found alone where it has nothing to draw."""
    chart = part.chart
    if chart.spec is None:
        return Lines(title=chart.finding, lines=tuple(chart.notes))
    caption = " ".join((part.explained, *chart.notes)).strip()
    return Chart(
        title=chart.finding,
        caption=caption,
        alt=part.alt,
        svg=draw(chart.spec, chart.frames, inked=True),
        narrow=draw(chart.spec, chart.frames, inked=True, width_px=NARROW_PX) if narrow else "",
    )


def table(part: parts.Table) -> Table:
    """Its columns but those that are drawn, cut to `MOST_ROWS` rows, and that said after its note."""
    columns = {name: column for name, column in part.titled.items() if column.kind != "line"}
    shown = part.frame.head(MOST_ROWS)
    rest = len(part.frame) - len(shown)
    more = f"{units.plural(rest, 'more row')} in the frozen data." if rest else ""
    return Table(
        title=part.title,
        columns=tuple(
            FrozenColumn(title=column.title, numeric=column.numeric or column.kind in _NUMBERS)
            for column in columns.values()
        ),
        rows=tuple(
            tuple(cell_text(value, column) for value, column in zip(row, columns.values(), strict=True))
            for row in shown[list(columns)].itertuples(index=False)
        ),
        tones=part.tones[: len(shown)],
        note=f"{part.note} {more}".strip(),
    )


def cell_text(value: Any, column: parts.TableColumn) -> str:
    """A cell as text."""
    if column.unit or isinstance(value, UnitCell):
        return written(value, UNITS[column.unit or "count"])
    if (text := cell(value)) == units.MISSING:
        return text
    if column.kind == "moment":
        return units.moment(value)
    if column.form:
        return str(column.form % value)
    return units.count(value) if column.kind == "number" else text


def cell(value: Any) -> str:
    """A value as text; what is missing is a dash."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {cell(item)}" for key, item in value.items()) or units.MISSING
    missing = value is None or value is pd.NA or value is pd.NaT or value != value  # noqa: PLR0124
    return units.MISSING if missing or value == "" else unticked(str(value))
