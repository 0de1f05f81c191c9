"""Every figure of a case by every door that tells it: pages, API, badges, the judge's sentences."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import quote

import pandas as pd
from starlette.applications import Starlette

from dashboard.api.routes import routes
from dashboard.links.links import Page
from dashboard.parts.parts import Headline, Lines, PageContent, Table, flat
from tests.dashboard.asking import ask
from tests.dashboard.pages.page_numbers import DIGITS, value

_SVG = "{http://www.w3.org/2000/svg}"


class Figure(NamedTuple):
    """One figure as one door tells it, a number or a word."""

    quantity: str
    case: tuple[str, str]
    door: str
    value: float | str | None


def contradictions(pages: dict[Page, PageContent], machine: str, build: str, steps: int) -> list[str]:
    """A line per quantity that two doors tell differently, to the digits that they show."""
    told: dict[tuple[str, tuple[str, str]], list[Figure]] = defaultdict(list)
    doors = (_of_pages(pages), _of_the_api(machine, build, steps), _of_badges(pages, machine, build))
    for figure in chain.from_iterable(doors):
        told[figure.quantity, figure.case].append(figure)
    lines = []
    for (quantity, case), figures in told.items():
        first = figures[0]
        lines += [
            f"{quantity} of {' with '.join(case)}: {first.door} {first.value}, {other.door} {other.value}"
            for other in figures[1:]
            if not _same(first.value, other.value)
        ]
    return [*lines, *_tallies(pages)]


def _same(one: float | str | None, other: float | str | None) -> bool:
    if isinstance(one, str | None) or isinstance(other, str | None):
        return one == other
    return math.isclose(one, other, rel_tol=DIGITS)


_COLUMNS = {
    "speedup": "speedup",
    "steps": "break-even",
    "cost": "compile cost",
    "day": "total",
    "latency": "latency",
}


def _of_pages(pages: dict[Page, PageContent]) -> Iterator[Figure]:
    for page, content in pages.items():
        for part in flat((*content.parts, *content.appendix())):
            if not isinstance(part, Table) or "strategy" not in part.frame:
                continue
            for row in part.frame.to_dict("records"):
                workload = row.get("workload", content.link.focus)
                yield from _of_row(f"{page.value or 'overview'} {part.key}", str(workload), row, part)


def _of_row(door: str, workload: str, row: dict[str, Any], table: Table) -> Iterator[Figure]:
    if row["strategy"] == "eager":
        return
    for column, quantity in _COLUMNS.items():
        if column in row and column in table.columns and table.columns[column].unit:
            number = None if pd.isna(row[column]) else float(row[column])
            yield Figure(quantity, (workload, row["strategy"]), door, number)


def _of_the_api(machine: str, build: str, steps: int) -> Iterator[Figure]:
    query = {"machine": machine, "build": build, "steps": steps}
    for row in ask(Starlette(routes=routes()), "/api/v1/break-even", query).json["rows"]:
        if row["strategy"] != "eager" and row["total_ns"] is not None:
            case, known = (row["workload"], row["strategy"]), row["break_even_steps"]
            yield Figure("break-even", case, "API", None if known in (None, "never") else float(known))


def _of_badges(pages: dict[Page, PageContent], machine: str, build: str) -> Iterator[Figure]:
    app = Starlette(routes=routes())
    cases = {figure.case for figure in _of_pages(pages) if figure.quantity == "speedup"}
    for workload, strategy in sorted(cases):
        query = {"machine": machine, "build": build}
        reply = ask(app, f"/badge/{quote(workload)}/{quote(strategy)}.svg", query)
        text = [each.text or "" for each in ET.fromstring(reply.body).iter(f"{_SVG}text")][1]
        if (speedup := value(text)) is not None:
            yield Figure("speedup", (workload, strategy), "badge", speedup)


def _tallies(pages: dict[Page, PageContent]) -> list[str]:
    """How many cases got slower: by the line of the Overview, and by the judge's sentence on Upgrade."""
    lines = [
        line
        for page in (Page.OVERVIEW, Page.UPGRADE)
        if page in pages
        for part in flat(pages[page].parts)
        if isinstance(part, Headline | Lines)
        for line in ((part.text,) if isinstance(part, Headline) else part.lines)
    ]
    said = {
        int(found[1]) for line in lines for found in re.finditer(r"(\d+)(?: of \d+ cases?)? slower", line)
    }
    return [f"cases slower: {sorted(said)}"] if len(said) > 1 else []
