"""The parts of a page on a screen: drawn by Streamlit, with what a click on one of them does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal
from urllib.parse import quote, quote_plus, unquote
from uuid import uuid4

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from compilewatch.dashboard.charts import sparklines
from compilewatch.dashboard.document.sections import cell_text
from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.parts.column_units import (
    UNITS,
    Unit,
    form_of,
    in_form,
    numbers_of,
    scale_of,
)
from compilewatch.dashboard.parts.parts import (
    LEFT_OUT,
    WRITTEN,
    Badges,
    Chart,
    Empty,
    Figure,
    Figures,
    Folded,
    Group,
    Leads,
    Lines,
    PageHeadline,
    Pairs,
    Part,
    Table,
    TableColumn,
)
from compilewatch.dashboard.render import controls as selectors
from compilewatch.dashboard.render import elements
from compilewatch.dashboard.text import theme
from compilewatch.dashboard.text.foreign_text import (
    escaped,
    readable,
    readable_frame,
    readable_spec,
    unticked,
)
from compilewatch.db import units
from compilewatch.db.records.vocabulary import Verdict

_DELTAS: dict[str, Literal["green", "red"]] = {"good": "green", "bad": "red"}
_BADGES: dict[str, tuple[Literal["green", "red", "orange", "gray"], str]] = {
    "good": ("green", ":material/check:"),
    "bad": ("red", ":material/error:"),
    "warning": ("orange", ":material/warning:"),
    "": ("gray", ":material/info:"),
}
_COLOURS = {Verdict.REGRESSED.value: "red", Verdict.IMPROVED.value: "green"}
_TONED = {Verdict.REGRESSED.value: theme.VERMILLION, Verdict.IMPROVED.value: theme.GREEN}
_MOST_LINES_WHOLE, _TALLEST_LOG_PX = 18, 420
# A longer table scrolls within itself; a shorter one is shown whole, or its last row would look cut.
_MOST_ROWS_WHOLE = 20
# The texts of a longer one take a tenth of a second.
_MOST_ROWS_WRITTEN = 500
_ICONS = {LEFT_OUT: ":material/report:"}
_MOST_CARDS = 4
_ANY = Link()
FOLD = "-fold"
"""What follows the key of a folded part in the state of a session: whether it is open."""
# Beside two columns of words on a phone.
_SHARE_PX = 130


@dataclass(frozen=True)
class Pick:
    """What a click on a mark or a row does, and a hint that says so.

    `act` gets the fields of the mark, or what the row has in the column `values`, which
    `elements.picked_value` gives as well; None for no row only where it `clears`. With `several` it gets the
    places of all rows that are chosen; `chosen` are those that are ticked at first.

    `actions` are the names of what can be done with each row without leaving the table, the first a button,
    the rest in a menu beside it, after the column `beside`; `act_in_row` gets the one that was clicked, and
    the row's value.
    """

    act: Callable[[Any], None] | Literal["rerun"]
    hint: str = ""
    values: str = ""
    clears: bool = False
    several: bool = False
    chosen: Sequence[int] = ()
    actions: Sequence[Sequence[str]] = ()
    beside: str = ""
    act_in_row: Callable[[str, Any], None] | None = None

    def act_on_mark(self, key: str) -> None:
        """Callback of the chart `key`."""
        if callable(self.act) and (mark := elements.picked(key)):
            self.act(mark)

    def act_on_rows(self, key: str) -> None:
        """Callback of the table `key`."""
        value = elements.picked_rows(key) if self.several else elements.picked_value(key)
        if callable(self.act) and (value is not None or self.clears):
            self.act(value)

    def act_on_button(self, key: str, column: str) -> None:
        """Callback of a button in the table `key`."""
        clicked = st.session_state[column]
        values = elements.row_values(key)
        if self.act_in_row and clicked["row"] < len(values):
            self.act_in_row(clicked["label"], values[clicked["row"]])


def draw(
    parts: Iterable[Part],
    *,
    picks: Mapping[str, Pick] | None = None,
    controls: Mapping[str, Callable[[], None]] | None = None,
    below: Mapping[str, Callable[[], None]] | None = None,
) -> None:
    """Draw `parts` below each other. By the key of a part: what a click on it does, what draws the widgets
    above it (of charts, tables, badges and sentences), and what draws those below it.
    """
    for part in parts:
        _draw(part, picks or {}, controls or {}, below or {})
        if part.key and below and part.key in below:
            below[part.key]()


def _draw(
    part: Part,
    picks: Mapping[str, Pick],
    controls: Mapping[str, Callable[[], None]],
    below: Mapping[str, Callable[[], None]],
) -> None:
    pick, above = picks.get(part.key), controls.get(part.key)
    match part:
        case PageHeadline():
            elements.headline(part.text, part.tone)
        case Lines():
            _lines(part, above)
        case Empty():
            elements.nothing_to_show(part.reason, next_step=part.next_step)
        case Badges():
            _badges(part, above)
        case Figures():
            # Seven cards in a row and one below it look like six and one too many.
            rows = -(-len(part.figures) // _MOST_CARDS)
            with st.grid(-(-len(part.figures) // rows), min_column_width=part.width_px):
                for figure in part.figures:
                    _figure(figure)
        case Table():
            _table(part, pick, above)
        case Chart():
            _chart(part, pick, above)
        case Pairs():
            _pairs(part)
        case Group() | Folded():
            _several(part, partial(draw, picks=picks, controls=controls, below=below))


def _several(part: Group | Folded, draw_parts: Callable[[Iterable[Part]], None]) -> None:
    if isinstance(part, Group):
        with elements.part(part.title) if part.title else st.container():
            for place, column in zip(_columns(part.shares or len(part.columns)), part.columns, strict=True):
                with place:
                    draw_parts(column)
        return
    # What nobody opens costs neither the server nor the browser anything.
    with st.expander(escaped(part.title), key=f"{part.key}{FOLD}", on_change="rerun") as box:
        if box.open:
            draw_parts(part.parts)


def _columns(shares: Sequence[int] | int) -> Sequence[DeltaGenerator]:
    return [st.container()] if shares == 1 else st.columns(shares, gap="medium")


def _lines(part: Lines, above: Callable[[], None] | None) -> None:
    if part.tone in ("warning", "bad"):
        box = st.warning if part.tone == "warning" else st.error
        title = [f"**{escaped(part.title)}**"] if part.title else []
        box("  \n".join([*title, *map(escaped, part.lines)]), icon=":material/report:")
    elif part.listed:
        with st.container(border=True):
            st.markdown(f"{_ICONS.get(part.title, ':material/list:')} **{escaped(part.title)}**")
            st.markdown("\n".join(f"- {escaped(line)}" for line in part.lines))
    elif part.title:
        with elements.part(part.title):
            if above:
                above()
            _plain(part)
    else:
        _plain(part)


def _plain(part: Lines) -> None:
    if part.code:
        tall = len(part.lines) > _MOST_LINES_WHOLE
        # The keyboard scrolls a container; code with a height of its own only the mouse does.
        with st.container(height=_TALLEST_LOG_PX if tall else "content", border=False):
            st.code("\n".join(part.lines), language=None, wrap_lines=True)
    elif part.shares:
        for line, share in zip(part.lines, part.shares, strict=True):
            st.progress(share, text=escaped(line))
    else:
        elements.notes(part.lines)


def _badges(part: Badges, above: Callable[[], None] | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        if above:
            above()
        for badge in part.badges:
            colour, icon = _BADGES[badge.tone]
            st.badge(escaped(badge.text), icon=icon, color=colour)


def _pairs(part: Pairs) -> None:
    pairs = list(part.pairs.items())
    half = -(-len(pairs) // 2)
    halves = [pairs[:half], pairs[half:]] if part.halved else [pairs]
    with elements.part(part.title) if part.title else st.container():
        elements.notes([part.note] if part.note else [])
        for place, shown in zip(_columns(len(halves)), halves, strict=True):
            with place:
                elements.pairs(dict(shown))


def _figure(figure: Figure) -> None:
    if figure.name:
        # A name is as long as it is, and a metric would cut it.
        with st.container(border=True, height="stretch", gap=None):
            st.markdown(f":small[{escaped(figure.title)}]", help=escaped(figure.explained))
            st.markdown(f"### {escaped(figure.text)}")
        return
    st.metric(
        escaped(figure.title),
        escaped(figure.text),
        escaped(figure.beside) or None,
        delta_color=_DELTAS.get(figure.tone, "off"),
        delta_arrow="off",
        border=True,
        height="stretch",
        help=escaped(figure.explained),
    )


def _chart(part: Chart, pick: Pick | None, above: Callable[[], None] | None) -> None:
    hint = f"{part.explained} {pick.hint}".strip() if pick else part.explained
    if part.tone is not None:
        elements.headline(part.chart.finding, part.tone)
    with st.container(border=not part.plain):
        title = part.alt if part.tone is not None else part.chart.finding
        if not part.plain:
            st.markdown(f"### {elements.unbroken(title)}", help=escaped(hint) or None)
        if above:
            above()
        if part.chart.spec is not None:
            more: dict[str, Any] = {}
            if pick:
                more = {"on_select": partial(pick.act_on_mark, part.key), "selection_mode": "pick"}
            elements.remember(part)
            drawn = {name: readable_frame(frame) for name, frame in part.chart.frames.items()}
            spec = elements.inked(readable_spec(part.chart.spec))
            st.vega_lite_chart(None, {**spec, "datasets": drawn}, key=part.key, alt=part.alt, **more)
        elements.notes(part.chart.notes)


def _table(part: Table, pick: Pick | None, above: Callable[[], None] | None) -> None:
    with st.container():
        if part.title:
            st.markdown(f"### {elements.unbroken(part.title)}")
        if above:
            above()
        if part.few:
            _few(part)
            return
        pick = pick or _row_link(part)
        elements.notes([text for text in (part.note, pick.hint if pick else "") if text])
        elements.remember(part, list(part.frame[pick.values]) if pick and pick.values else ())
        columns = part.titled
        buttons = _button_columns(part.key, pick) if pick and pick.actions else {}
        shown = _on_screen(part.frame, columns).assign(
            **{name: cells for name, (cells, _) in buttons.items()}
        )
        writers = _writers(part.frame, columns, shown)
        st.dataframe(
            # What is missing is the grid's own: the text of a style would stand in its place.
            shown.style.format(writers, na_rep="") if writers else shown,
            column_config={
                **{
                    name: _configured(column, part.frame[name], written=name in writers)
                    for name, column in columns.items()
                },
                **{name: config for name, (_, config) in buttons.items()},
            },
            column_order=[
                each
                for name, column in columns.items()
                if not column.hidden
                for each in (name, *(buttons if pick and name == pick.beside else ()))
            ],
            hide_index=True,
            placeholder=units.MISSING,
            height="content" if len(part.frame) <= _MOST_ROWS_WHOLE else "auto",
            key=part.key,
            alt=part.alt,
            **(_selection(part.key, pick) if pick else {}),
        )


def _button_columns(key: str, pick: Pick) -> dict[str, tuple[list[Any], Any]]:
    """The cells and the configuration of the columns of the buttons for the actions of `pick`."""
    first = [each[0] if each else None for each in pick.actions]
    rest = [list(each[1:]) for each in pick.actions]
    columns: dict[str, tuple[str, list[Any]]] = {f"{key}-do": ("Do", first)}
    if any(rest):
        columns[f"{key}-more"] = ("More", rest)
    return {
        name: (
            cells,
            st.column_config.ButtonColumn(title, on_click=pick.act_on_button, args=(key, name), key=name),
        )
        for name, (title, cells) in columns.items()
    }


def _few(part: Table) -> None:
    """A table as text: links are links, and each row has the colour that its tone asks for."""
    elements.remember(part)
    tones = part.tones or ("",) * len(part.frame)
    columns = {name: column for name, column in part.titled.items() if not column.hidden}
    cells = {name: _few_cells(part.frame, name, column, tones) for name, column in columns.items()}
    # Titles may be alike or empty, which the keys of a mapping may not.
    titles = [elements.unbroken(each.title) for each in columns.values()]
    shown = pd.DataFrame(cells).set_axis(titles, axis=1)
    st.table(shown, border="horizontal", hide_index=True, alt=part.alt)
    elements.notes([part.note] if part.note else [])


def _few_cells(frame: pd.DataFrame, name: str, column: TableColumn, tones: Sequence[str]) -> list[str]:
    if column.kind == "line":
        pictures = (
            sparklines.picture(values, _TONED.get(tone, theme.GREY))
            for values, tone in zip(frame[name], tones, strict=True)
        )
        return [f"![]({picture})" if picture else units.MISSING for picture in pictures]
    if column.leads:
        links_and_names = (str(each or "").partition("#") for each in _addresses(frame, name, column.leads))
        return [
            f"[{escaped(unquote(text))}]({there})" if there else escaped(unquote(text))
            for there, _, text in links_and_names
        ]
    texts = [elements.unbroken(cell_text(value, column)) for value in frame[name]]
    if column.numeric:
        # In one line, and as wide as the widest, so that digits stand below each other.
        lengths = [len(cell_text(value, column)) for value in frame[name]]
        texts = [
            text.replace(" ", "\N{NO-BREAK SPACE}").rjust(
                len(text) + max(lengths) - length, "\N{FIGURE SPACE}"
            )
            for text, length in zip(texts, lengths, strict=True)
        ]
    if not column.toned:
        return texts
    return [
        f":{_COLOURS[tone]}[{text}]" if tone in _COLOURS else text
        for text, tone in zip(texts, tones, strict=True)
    ]


def _on_screen(frame: pd.DataFrame, columns: Mapping[str, TableColumn]) -> pd.DataFrame:
    """Numbers in the unit that the screen has them in; in words intervals and what has units of its own."""
    shown = frame[list(columns)].copy()
    for name, column in columns.items():
        if column.leads:
            shown[name] = _addresses(frame, name, column.leads)
        elif column.kind in WRITTEN:
            shown[name] = [cell_text(value, column) for value in frame[name]]
        elif column.unit:
            unit, numbers = UNITS[column.unit], numbers_of(frame[name])
            shown[name] = numbers.mask(numbers.abs() < unit.least, 0.0) / scale_of(unit, numbers)[1]
        elif column.kind == "text":
            shown[name] = [unticked(text) if isinstance(text, str) else text for text in frame[name]]
    return shown


def _writers(frame: pd.DataFrame, columns: Mapping[str, TableColumn], shown: pd.DataFrame) -> dict[str, Any]:
    """What writes the numbers of the columns that a grid writes otherwise than all else: with a hyphen for a
    minus, and without a mark between thousands. The grid goes on to sort by the number.
    """
    if len(frame) > _MOST_ROWS_WRITTEN:
        return {}
    forms = {
        name: form_of(UNITS[column.unit], frame[name])
        for name, column in columns.items()
        if _is_formatted(column)
    }
    return {
        name: partial(in_form, form)
        for name, form in forms.items()
        if form.startswith("%+") or ((shown[name] < 0) | (shown[name] >= 1_000)).any()
    }


def _is_formatted(column: TableColumn) -> bool:
    """Whether a grid gets plain numbers of it and a form of printf."""
    return (
        column.kind not in ("interval", "sides", *WRITTEN)
        and not column.leads
        and bool(column.unit)
        and UNITS[column.unit].form != "localized"
    )


def _row_link(part: Table) -> Pick | None:
    """What a row leads to where the page says nothing else: where its name does."""
    for column in part.titled.values():
        if column.leads and column.pinned and set(column.leads.keys.values()) <= set(part.frame):
            ((key, of),) = column.leads.keys.items()
            return Pick(partial(_go, column.leads.page, key), values=of)
    return None


def _go(page: Page, key: str, value: Any) -> None:
    selectors.go(page, **_changes({key: value}))


def _changes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Of a link to these values: the builds of one machine are not those of another."""
    return {"build": None, **values} if "machine" in values else dict(values)


def _addresses(frame: pd.DataFrame, name: str, leads: Leads) -> list[str | None]:
    """What a column of links holds: an address and behind it the name, which is what is shown. What has no
    page, as a machine that measured nothing, leads nowhere.
    """
    # One link with marks in place of the values: a table of hundreds of rows is drawn on every run.
    marks = {key: uuid4().hex for key in leads.keys}
    of_link = {key: (mark,) if isinstance(getattr(_ANY, key), tuple) else mark for key, mark in marks.items()}
    to = f"./{links.href(links.move(selectors.current(), leads.page, **_changes(of_link)))}"
    values = [frame[of] if of in frame else [None] * len(frame) for of in leads.keys.values()]
    addresses: list[str | None] = []
    for text, *each in zip(frame[name], *values, strict=True):
        there = "" if any(map(pd.isna, each)) else to
        for mark, value in zip(marks.values(), each, strict=True):
            there = there.replace(mark, quote_plus(str(value), errors="replace"))
        addresses.append(None if pd.isna(text) else f"{there}#{quote(readable(str(text)))}")
    return addresses


def _selection(key: str, pick: Pick) -> dict[str, Any]:
    ticked = {"selection_default": {"selection": {"rows": list(pick.chosen)}}} if pick.chosen else {}
    act = partial(pick.act_on_rows, key) if callable(pick.act) else pick.act
    return {"on_select": act, "selection_mode": "multi-row" if pick.several else "single-row", **ticked}


def _measured(
    column: TableColumn, unit: Unit, values: pd.Series, shared: dict[str, Any], *, written: bool
) -> Any:
    if column.kind == "interval":
        title = f"{column.title} ({unit.raw})" if unit.write_end else column.title
        return st.column_config.TextColumn(title, alignment="right", **shared)
    scale, _ = scale_of(unit, values)
    title = f"{column.title} ({scale})" if scale else column.title
    return st.column_config.NumberColumn(title, format=None if written else form_of(unit, values), **shared)


def _configured(column: TableColumn, values: pd.Series, *, written: bool) -> Any:
    """A column of these values as Streamlit takes it; of one that is `written` the grid shows given texts."""
    shared: dict[str, Any] = {
        "pinned": column.pinned or None,
        "help": escaped(column.explained) or None,
        "width": "large" if column.wide else column.width_px or None,
    }
    if column.unit and column.kind != "sides":
        return _measured(column, UNITS[column.unit], values, shared, written=written)
    match column.kind:
        case "line":
            return st.column_config.LineChartColumn(
                column.title, width="small", help=escaped(column.explained)
            )
        case "moment":
            return st.column_config.DatetimeColumn(column.title, format="YYYY-MM-DD HH:mm", timezone="UTC")
        case "share":
            shared["width"] = _SHARE_PX
            return st.column_config.ProgressColumn(
                column.title, format=column.form, min_value=0, max_value=100, **shared
            )
        case "number":
            return st.column_config.NumberColumn(column.title, format=column.form or "localized", **shared)
        case _:
            alignment: Any = "right" if column.numeric else "left" if column.leads else None
            if column.leads:
                shared["display_text"] = "#(.*)$"
            made = st.column_config.LinkColumn if column.leads else st.column_config.TextColumn
            return made(column.title, alignment=alignment, **shared)
