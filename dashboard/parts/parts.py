"""A page as parts: what it says and shows, described once for the screen and for the frozen report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import pandas as pd

from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.text.glossary import WORDS
from compilewatch.db import units

_KNOWN_OF_SOME = frozenset({"bound", "noise"})
LEFT_OUT = "Failures and exclusions"
Tone = Literal["", "good", "bad", "warning"]


@dataclass(frozen=True)
class PageHeadline:
    """What the page found, in a sentence; the first thing on it, and what a preview of its link says."""

    text: str
    tone: Tone = ""
    key: str = "headline"


@dataclass(frozen=True)
class Lines:
    """Sentences below each other; with `listed` a list under `title`, with the tone "warning" a warning, with
    "bad" an error.

    `code` is a command or a log, shown as it is. `shares`, from 0 to 1, are how far what each line names has
    come, drawn as bars on a screen.
    """

    lines: tuple[str, ...]
    title: str = ""
    listed: bool = False
    code: bool = False
    shares: tuple[float, ...] = ()
    tone: Tone = ""
    key: str = ""


@dataclass(frozen=True)
class Empty:
    """What stands in the place of what has no data: why, and what to do."""

    reason: str
    next_step: str = ""
    key: str = ""


@dataclass(frozen=True)
class Badge:
    """A word about the state of something."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True)
class Badges:
    """The state of something in a few words."""

    badges: tuple[Badge, ...]
    key: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure: its title, its value as text, and what it means; `beside` stands below the value.

    `name` says that the value is a name, as long as it is.
    """

    title: str
    text: str
    explained: str
    beside: str = ""
    tone: Tone = ""
    name: bool = False


@dataclass(frozen=True)
class Figures:
    """A few figures in a row; on a screen each is at least `width_px` wide."""

    figures: tuple[Figure, ...]
    width_px: int = 150
    key: str = ""


class Leads(NamedTuple):
    """Where a click on a name leads: to `page`, with keys whose values columns of the row have."""

    page: Page
    keys: Mapping[str, str]


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: its title, and of what kind its cells are.

    `form` writes the cells of a column of numbers ("%+.1f"). A "share" is in percent, a bar on a screen. A
    "line" is drawn on a screen only, each on a scale of its own. Numbers stand on the right, also where they
    are texts already. `width_px` is the width on a screen, which else follows the first rows. Cells that are
    `toned` have the colour of their row.

    With a `unit` of `dashboard.parts.column_units` cells are raw numbers, of an "interval" pairs of them or a
    word in their place, of "sides" those of base and head. Cells of a "quantity" have units of their own. A
    screen shows what is `hidden` to whoever chooses it, and texts that lead somewhere as links.
    """

    title: str
    kind: Literal["text", "number", "share", "moment", "line", "interval", "sides", "quantity"] = "text"
    numeric: bool = False
    pinned: bool = False
    wide: bool = False
    width_px: int = 0
    explained: str = ""
    form: str = ""
    unit: str = ""
    hidden: bool = False
    leads: Leads | None = None
    toned: bool = False


WORKLOAD = TableColumn("Workload", pinned=True, leads=Leads(Page.WORKLOAD, {"focus": "workload"}))
MACHINE = TableColumn("Machine", leads=Leads(Page.OVERVIEW, {"machine": "machine_id"}))
BUILD = TableColumn("Build", leads=Leads(Page.OVERVIEW, {"build": "build_id"}))
TRIAL = TableColumn("Trial", leads=Leads(Page.TRIAL, {"trial": "trial"}))
"""Names that lead to what they name; a build to what the machine of the page measured with it."""

WRITTEN = frozenset({"interval", "sides", "quantity"})
"""Kinds of columns whose cells are more than a number."""


@dataclass(frozen=True)
class Table:
    """The columns of `frame` that `columns` names, by name, with their titles.

    `note` says how to read it. `tones` gives each row a verdict, whose word is in one of its cells as well.
    With `few` rows a screen writes them out, with a line for each, and the last point of a "line" is marked.
    """

    key: str
    alt: str
    frame: pd.DataFrame
    columns: Mapping[str, TableColumn]
    title: str = ""
    note: str = ""
    tones: tuple[str, ...] = ()
    few: bool = False

    @property
    def titled(self) -> dict[str, TableColumn]:
        """`columns` without those of a case that no row knows, as what bounds it on a CPU."""
        return {
            name: column
            for name, column in self.columns.items()
            if name not in _KNOWN_OF_SOME
            or (name in self.frame and (self.frame[name].dropna() != units.MISSING).any())
        }


@dataclass(frozen=True)
class Chart:
    """A chart under what it found. `explained` says what its marks mean, `alt` what it shows. With a `tone`
    what it found is the headline of the page. One that is `plain` stands on a screen without box and title.
    """

    key: str
    alt: str
    chart: ChartContent
    explained: str = ""
    tone: Tone | None = None
    plain: bool = False


@dataclass(frozen=True)
class Pairs:
    """Names and texts beside each other, a missing text as a dash; with `halved` a screen has two columns."""

    title: str
    pairs: Mapping[str, str | None]
    note: str = ""
    halved: bool = False
    key: str = ""


@dataclass(frozen=True)
class Group:
    """Parts that belong together, under a title if it has one; a screen has its columns beside each other, as
    wide as their `shares` say, else alike.
    """

    columns: tuple[tuple[Part, ...], ...]
    title: str = ""
    key: str = ""
    shares: tuple[int, ...] = ()


@dataclass(frozen=True)
class Folded:
    """Parts under a title, which a screen has made and shows once somebody opens them; a report has all.

    They are made once, for as long as the page around them is kept.
    """

    title: str
    make: Callable[[], tuple[Part, ...]]
    key: str

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        return self.make()


Part = PageHeadline | Lines | Empty | Badges | Figures | Table | Chart | Pairs | Group | Folded


@dataclass(frozen=True)
class PageContent:
    """What a page shows. `link` is the one asked for with what the page chose itself, as its focus.

    `builds` are those that it was measured with, newest first, and `data` has its numbers by name, for
    programs. `appendix` are tables that a report has beside the page.
    """

    parts: tuple[Part, ...]
    link: Link
    builds: tuple[str, ...] = ()
    data: Callable[[], dict[str, Any]] = dict
    appendix: Callable[[], tuple[Part, ...]] = tuple

    @property
    def headline(self) -> str:
        """What the page says first: its headline, else what its first chart found, else a sentence."""
        for part in flat(self.parts):
            match part:
                case PageHeadline(text=text) | Empty(reason=text) | Chart(chart=ChartContent(finding=text)):
                    return text
        lines = [part.lines for part in flat(self.parts) if isinstance(part, Lines) and part.lines]
        return lines[0][0] if lines else ""


def flat(parts: Iterable[Part]) -> Iterator[Part]:
    """`parts` one after the other: the title of a group, then what is in its columns or folded in it."""
    for part in parts:
        if not isinstance(part, Group | Folded):
            yield part
            continue
        if part.title:
            yield Lines((), part.title)
        for column in part.columns if isinstance(part, Group) else (part.parts,):
            yield from flat(column)


def titled(title: str, *parts: Part) -> Group:
    """`parts` below each other under a title."""
    return Group((parts,), title)


HOW_SURE = "How sure is this?"


def how_sure(*parts: Part) -> tuple[Folded, ...]:
    """Advice, method, caveats and noise: what stands folded below the proof. Nothing where there is none."""
    return (Folded(HOW_SURE, lambda: parts, "how-sure"),) if parts else ()


def folded(tables: Iterable[Table]) -> tuple[Folded, ...]:
    """Each of `tables` under its title, for whoever opens it."""
    return tuple(Folded(each.title, partial(_untitled, each), each.key) for each in tables)


def _untitled(table: Table) -> tuple[Part, ...]:
    return (replace(table, title=""),)


def named(parts: Iterable[Part], *keys: str) -> tuple[Part, ...]:
    """Those of `parts` with one of `keys`, in their order."""
    return tuple(part for part in parts if part.key in keys)


def texts(titles: Mapping[str, str]) -> dict[str, TableColumn]:
    """Columns of texts by name: name -> title."""
    return {name: TableColumn(title) for name, title in titles.items()}


def numbers(titles: Mapping[str, str]) -> dict[str, TableColumn]:
    """Columns of numbers that are texts already: name -> title."""
    return {name: TableColumn(title, numeric=True) for name, title in titles.items()}


def quantities(unit: str, titles: Mapping[str, str]) -> dict[str, TableColumn]:
    """Columns of raw numbers in one unit by name: name -> title."""
    return {name: TableColumn(title, numeric=True, unit=unit) for name, title in titles.items()}


def hidden(columns: Mapping[str, TableColumn]) -> dict[str, TableColumn]:
    """The same columns, shown to whoever chooses them."""
    return {name: replace(column, hidden=True) for name, column in columns.items()}


BOUND = texts({"bound": "Bound"})
"""The column of what bounds a case."""

TRIALS = {"trials": TableColumn("n", numeric=True, unit="count", explained="Trials that count.")}

CASE_FACTS = {
    **BOUND,
    "noise": TableColumn(
        "Noise floor",
        numeric=True,
        unit="share",
        explained=WORDS["noise floor"],
    ),
    **TRIALS,
}
"""What every table of cases says of each: what bounds it, the change it can show, and its trials."""


def listed(title: str, lines: Sequence[str], *, key: str = "") -> tuple[Lines, ...]:
    """Sentences as a list under a title; nothing where there are none."""
    return (Lines(tuple(lines), title, listed=True, key=key),) if lines else ()


def notes(lines: Iterable[str], *, tone: Tone = "", key: str = "") -> tuple[Lines, ...]:
    """Sentences without a title, those that say something; nothing where none does."""
    sentences = tuple(filter(None, lines))
    return (Lines(sentences, tone=tone, key=key),) if sentences else ()


def informative(columns: Mapping[str, TableColumn], frame: pd.DataFrame) -> dict[str, TableColumn]:
    """`columns` without those in which no row of `frame` has a value."""
    return {name: column for name, column in columns.items() if name in frame and frame[name].notna().any()}


def table(
    key: str, alt: str, frame: pd.DataFrame, columns: Mapping[str, TableColumn], **more: Any
) -> tuple[Table, ...]:
    """A table; nothing where it has no row."""
    return () if frame.empty else (Table(key, alt, frame, columns, **more),)
