"""What a page shows as a file: tables as CSV, JSON and Markdown, charts as SVG, PNG and PDF.

Nothing here is prepared before somebody asks for it: a rerun only remembers what was drawn.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pandas as pd

from compilewatch.dashboard.document import svg
from compilewatch.dashboard.document.sections import cell_text
from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts.column_units import UNITS, UnitCell
from compilewatch.dashboard.parts.parts import WRITTEN, Chart, Table, TableColumn
from compilewatch.db import units
from compilewatch.db.cells import escaped_text, harmless
from compilewatch.db.metrics.groups import row_dicts

TABLE_SCHEMA = "compilewatch.table/1"
# A number as tables show it: signed, with its unit.
_NUMBER = re.compile(r"[+\u2212-]?\d[\d.,]*(?:\s?%|x|\s[A-Za-zµ]{1,5})?")
_LONGEST_NAME = 120
_ENDS = {"interval": ("low", "high"), "sides": ("base", "head")}


Shown = Table | Chart


@dataclass(frozen=True)
class ExportOrigin:
    """Where an export comes from: the view in words and as a link, and the data version."""

    link: Link
    sentence: str
    permalink: str
    data_version: int

    def line(self, at: datetime) -> str:
        """What stands above or below an export, so that it can be found again."""
        return f"{self.sentence} Data version {self.data_version}, exported {units.moment(at)}."


@dataclass(frozen=True)
class FileFormat:
    """One kind of file: its name, the end of the file's name, its media type, and how it is made."""

    name: str
    suffix: str
    media_type: str
    make: Callable[[Any, ExportOrigin, datetime], bytes]


def formats_of(shown: Shown) -> dict[str, FileFormat]:
    """The formats that `shown` can have, by name."""
    return {each.name: each for each in (_TABLE_FORMATS if isinstance(shown, Table) else _CHART_FORMATS)}


def file_name(shown: Shown, origin: ExportOrigin, suffix: str) -> str:
    """A name that says the page, what of it, the filters and the data version."""
    filters = [
        text
        for key, text in links.params(origin.link)
        if key not in {links.DATA_VERSION, "machine", "build", "base", "head", "trial", "run"}
    ]
    parts = ["compilewatch", shown.key, *filters]
    words = re.sub(r"[^A-Za-z0-9._+-]+", "-", "_".join(parts)).strip("-")
    return f"{words[:_LONGEST_NAME]}_v{origin.data_version}.{suffix}"


def _as_csv(table: Table, origin: ExportOrigin, at: datetime) -> bytes:  # noqa: ARG001 - a header would be no CSV
    """A header of titles and a line per row (RFC 4180), as UTF-8."""
    out = io.StringIO()
    writer = csv.writer(out)
    raw = _raw(table)
    writer.writerow([_cell(title) for title in raw])
    for row in zip(*raw.values(), strict=True):
        writer.writerow([_cell(_text(value)) for value in row])
    return out.getvalue().encode(errors="replace")


def _as_json(table: Table, origin: ExportOrigin, at: datetime) -> bytes:
    """The rows by column name, with the titles, and where they come from."""
    document = {
        "schema": TABLE_SCHEMA,
        "title": table.alt,
        "view": origin.sentence,
        "link": origin.permalink,
        "data_version": origin.data_version,
        "exported_at": at.isoformat(),
        "columns": {name: titles[0] for name, titles in _titles(table).items()},
        "rows": [
            {
                key: _value(value)
                for name, column in table.titled.items()
                for key, value in _keyed(name, column, row[name])
            }
            for row in _rows(table)
        ],
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1).encode(errors="replace")


def _as_markdown(table: Table, origin: ExportOrigin, at: datetime) -> bytes:
    """A table for chat, issues and pull requests, with the view and its link above."""
    names = [
        name
        for name, column in table.titled.items()
        if column.kind in WRITTEN or not any(map(_is_list, table.frame[name]))
    ]
    lines = [
        f"**{escaped_text(table.alt)}**",
        "",
        f"{escaped_text(origin.line(at))} [Open the view]({origin.permalink.replace(')', '%29')})",
        "",
        _line([table.columns[name].title for name in names]),
        _line(["---"] * len(names), escape=False),
    ]
    titled = table.titled
    lines += [
        _line(
            [
                cell_text(row[name], titled[name])
                if titled[name].unit or titled[name].kind in WRITTEN
                else _text(row[name]) or units.MISSING
                for name in names
            ]
        )
        for row in _rows(table)
    ]
    return ("\n".join(lines) + "\n").encode(errors="replace")


def _drawn(chart: Chart, origin: ExportOrigin, at: datetime) -> str:
    assert chart.chart.spec is not None
    return svg.draw(chart.chart.spec, chart.chart.frames, title=chart.alt, subtitle=origin.line(at))


_TABLE_FORMATS = (
    FileFormat("CSV", "csv", "text/csv", _as_csv),
    FileFormat("JSON", "json", "application/json", _as_json),
    FileFormat("Markdown", "md", "text/markdown", _as_markdown),
)
_CHART_FORMATS = (
    FileFormat("PNG", "png", "image/png", lambda *of: svg.as_png(_drawn(*of))),
    FileFormat("SVG", "svg", "image/svg+xml", lambda *of: _drawn(*of).encode()),
    FileFormat("PDF", "pdf", "application/pdf", lambda *of: svg.as_pdf(_drawn(*of))),
)


def _titles(table: Table) -> dict[str, list[str]]:
    """By column its title with the unit of its numbers, of two numbers one for each, of one in a unit of its
    own with one for the unit.
    """
    titles = {}
    for name, column in table.titled.items():
        unit = UNITS[column.unit].raw if column.unit else ""
        ends = [f"{column.title}, {end}" for end in _ENDS.get(column.kind, ())]
        titles[name] = [f"{title} ({unit})" if unit else title for title in ends or [column.title]]
        titles[name] += [f"{column.title}, unit"] if column.kind == "quantity" else []
    return titles


def _raw(table: Table) -> dict[str, list[Any]]:
    """What a file of the table has, title -> values: numbers as they are, intervals end by end."""
    raw: dict[str, list[Any]] = {}
    for name, titles in _titles(table).items():
        cells = [_cells(table.titled[name], value) for value in table.frame[name].tolist()]
        for place, title in enumerate(titles):
            raw[title] = [cell[place] for cell in cells]
    return raw


def _cells(column: TableColumn, value: Any) -> tuple[Any, ...]:
    """A cell as a file has it, in as many cells as its column has titles. A word is no number in a unit."""
    if isinstance(value, UnitCell):
        return value.value, UNITS[value.unit].raw if value.unit in UNITS else ""
    if column.kind in _ENDS:
        return tuple(value) if isinstance(value, tuple) else (None, None)
    return (None if column.unit and isinstance(value, str) else value,)


def _keyed(name: str, column: TableColumn, value: Any) -> list[tuple[str, Any]]:
    """The keys of a cell in JSON: both ends are a list, a unit of its own has a key."""
    cells = _cells(column, value)
    if isinstance(value, UnitCell):
        return [(name, cells[0]), (f"{name}_unit", cells[1])]
    return [(name, list(cells) if isinstance(value, tuple) else cells[0])]


def _rows(table: Table) -> list[dict[str, Any]]:
    return row_dicts(table.frame[list(table.titled)])


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or (not _is_list(value) and value != value)  # noqa: PLR0124


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) or (hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0)


def _value(value: Any) -> Any:
    """As JSON: numbers stay numbers, moments are RFC 3339, what is missing is null."""
    if _is_missing(value) or value == units.MISSING:
        return None
    if _is_list(value):
        return [_value(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    plain = value.item() if hasattr(value, "item") else value
    return plain if isinstance(plain, bool | int | float | str) else str(plain)


def _text(value: Any) -> str:
    """As a cell: what is missing is empty, lists are JSON."""
    plain = _value(value)
    if plain is None:
        return ""
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _cell(text: str) -> str:
    return text if _NUMBER.fullmatch(text) else harmless(text)


def _line(cells: Sequence[str], *, escape: bool = True) -> str:
    return f"| {' | '.join(escaped_text(cell) if escape else cell for cell in cells)} |"
