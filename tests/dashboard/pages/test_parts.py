"""A page described as parts says the same on a screen and in a frozen report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from compilewatch.dashboard.document.content import Chart, Figures, Lines, Section, Table
from compilewatch.dashboard.document.page import render
from compilewatch.dashboard.document.sections import sections
from compilewatch.dashboard.links.links import Link, Page, href
from compilewatch.dashboard.pages.registry import CONTENTS
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.read.data import read_choices
from compilewatch.dashboard.render.shell import resolved_view
from compilewatch.dashboard.reports.freeze import freeze_link
from compilewatch.db import units
from tests.dashboard.conftest import opened

pytestmark = pytest.mark.usefixtures("recorded_here")
exhaustive = partial(pytest.param, marks=pytest.mark.slow)
LINKS = [
    Link(page=Page.BREAK_EVEN, focus="bert-base", steps=2_000, restarts=50, price=7.5),
    exhaustive(Link(page=Page.BREAK_EVEN, focus="lstm-cell", scale="log")),
    exhaustive(Link(page=Page.BREAK_EVEN, strategy=("max-autotune",))),
    exhaustive(Link(page=Page.COLD_START)),
    Link(page=Page.COLD_START, focus="mlp"),
    Link(page=Page.MODES),
    exhaustive(Link(page=Page.MODES, goal="steps", steps=500)),
    exhaustive(Link(page=Page.MODES, goal="memory")),
    exhaustive(Link(page=Page.WORKLOAD, focus="bert-base")),
    Link(page=Page.WORKLOAD),
    Link(page=Page.WORKLOAD, focus="mlp", metric="latency", axis="torch"),
    Link(page=Page.MODES, focus="bert-base"),
    Link(page=Page.TRIAL, focus="mlp"),
    Link(page=Page.TRIAL, strategy=("max-autotune",)),
    Link(page=Page.TRIAL, trial="run-gpu-box-3-0-0002-0001"),
    # It failed.
    Link(page=Page.TRIAL, trial="run-gpu-box-3-0-0002-0005"),
    Link(page=Page.TRIAL, trial="trial-nothing-compiled"),
    Link(page=Page.RUNS),
]
# The form of the page Runs is no part of a report.
ONLY_ON_SCREEN = {"Import results"}


def plain(text: str) -> str:
    """Without the escapes of Markdown, joiners, places to break and unbreakable spaces."""
    return text.replace("\\", "").replace("\u2060", "").replace("\u200b", "").replace("\u00a0", " ")


def of_report(found: Section) -> Iterator[str]:
    """Every text of a section."""
    match found:
        case Lines():
            yield from (found.title, *found.lines)
        case Figures():
            for title, text in found.figures:
                yield from (title, *text.split(", ", 1))
        case Table():
            yield from (found.title, *found.note.split("  \n"), *(column.title for column in found.columns))
            # A screen has numbers in one unit a column.
            places = [place for place, column in enumerate(found.columns) if not column.numeric]
            yield from (row[place] for row in found.rows for place in places if row[place] != units.MISSING)
        case Chart():
            yield from (found.title, found.alt, *found.caption.split(". "))


def on_screen(text: str, screen: str) -> bool:
    """As a whole, or word by word where they are badges; names and texts have no titles on a screen."""
    return text in ("What", "Value") or text in screen or all(word in screen for word in text.split(", "))


def of_screen(test: AppTest) -> str:
    """Everything that a screen shows, line by line."""
    kinds = (test.markdown, test.caption, test.info, test.warning, test.error, test.code)
    said = [str(text) for kind in kinds for each in kind for text in (each.value, getattr(each, "help", ""))]
    said += [text for card in test.metric for text in (card.label, str(card.value), str(card.delta))]
    for chart in test.get("vega_lite_chart"):
        said.append(chart.proto.alt)
    said += [bar.proto.text for bar in test.get("progress")]
    said += [each.label for each in test.expander]
    for pairs in test.table:
        said += [str(text) for text in (*pairs.value.index, *pairs.value.to_numpy().ravel())]
    for table in test.dataframe:
        columns = json.loads(table.proto.columns)
        for name, column in table.value.items():
            config = columns[str(name)]
            said.append(str(config.get("label") or name))
            form = (config.get("type_config") or {}).get("format") or "%s"
            said += [_written(value, form) for value in column]
    return "\n".join(map(plain, said))


def _written(value: object, form: str) -> str:
    if isinstance(value, datetime):
        return units.MISSING if value is pd.NaT else units.moment(value)
    if not isinstance(value, str | int | float) or value != value:
        return units.MISSING
    return form % value if "%" in form else str(value)


@pytest.mark.parametrize("link", LINKS, ids=href)
def test_a_screen_and_a_report_say_what_the_parts_say(link: Link) -> None:
    view = resolved_view(link, read_choices())
    found = CONTENTS[link.page](view.link)
    test = opened(link)
    screen = of_screen(test)
    report = freeze_link(href(link), title=None, by="ann", at=datetime(2026, 11, 20, tzinfo=UTC))
    # What follows are tables of the appendix, and of a model its other tabs.
    context, *ours = report.sections[: 1 + len(sections(found.parts))]
    assert isinstance(context, Lines)
    machine = read_choices().machines.get(view.link.machine or "", "last run")
    assert context.lines[0].startswith(machine)
    said = [text for section in ours for text in of_report(section)]
    assert len(said) > 20
    assert [text for text in said if not on_screen(plain(text), screen)] == []

    numbers = [cell for each in ours if isinstance(each, Table) for row in each.rows for cell in row]
    everything = "\n".join(map(plain, [*said, *numbers]))
    headings = [plain(each.value).removeprefix("### ") for each in test.markdown if "### " in each.value]
    figures = [plain(str(text)) for card in test.metric for text in (card.label, card.value)]
    alts = [chart.proto.alt for chart in test.get("vega_lite_chart")]
    cells = [cell for table in test.dataframe for cell in table.value.to_numpy().ravel()]
    headings = [re.sub(r"^:\w+\[(.*)\]$", r"\1", heading) for heading in headings]
    shown = [*headings, *figures, *alts, *(cell for cell in cells if isinstance(cell, str))]
    assert len(alts) == sum(isinstance(section, Chart) for section in ours)
    described = list(parts.flat(found.parts))
    assert len(test.dataframe) == sum(isinstance(part, parts.Table) for part in described)
    paired = sum(isinstance(part, parts.Pairs) for part in described)
    assert len(test.dataframe) + paired == sum(isinstance(section, Table) for section in ours)
    assert [text for text in shown if text not in everything and text not in ONLY_ON_SCREEN] == []


def test_a_long_caption_is_whole_in_a_report() -> None:
    page = render(freeze_link("break-even", title=None, by="ann", at=datetime(2026, 11, 20, tzinfo=UTC)))
    (caption, *_) = re.findall("<figcaption>(.*?)</figcaption>", page)
    assert len(caption) > 300
    assert not caption.endswith("…")


def test_a_report_of_a_workload_that_is_not_there_is_refused() -> None:
    with pytest.raises(Exception, match="nothing under these filters"):
        freeze_link("break-even?focus=gone", title=None, by="ann", at=datetime(2026, 11, 20, tzinfo=UTC))
