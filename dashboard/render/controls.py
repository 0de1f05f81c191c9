"""Widgets that show a selector of the link and write a changed one back to the URL.

The URL is the only state. Before a widget is drawn it is given the link's value, and a change replaces the
query string, which the browser records, so that back and forward undo and redo every filter.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import islice
from typing import Any

import streamlit as st

from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import PAGES, Link, Page
from compilewatch.dashboard.links.values import Decimal, Whole
from compilewatch.dashboard.text.foreign_text import escaped, shortened
from compilewatch.db import units

_LINK = "link"
_PAGES = "pages"
_BLANK = Link(page=Page.OVERVIEW)
MOST_OFFERED = 500
"""Of a drop-down: every session keeps the words of each, and every look at a page sends them."""


def remember(link: Link) -> None:
    """Make `link` the one that changes of widgets start from."""
    st.session_state[_LINK] = link


def current() -> Link:
    """The link that `remember` was given last in this session."""
    link = st.session_state[_LINK]
    assert isinstance(link, Link)
    return link


def change(**changes: object) -> None:
    """Callback: show the current link with `changes`. The data version it was made at is forgotten, and with
    a build the runs that were meant of it.
    """
    runs = {links.RUNS_OF[key]: () for key in changes if key in links.RUNS_OF}
    wanted: dict[str, Any] = {"data": None, **runs, **changes}
    st.query_params.from_dict(links.query(replace(current(), **wanted)))


def _widget(key: str, value: object, words: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What every widget of a selector is given, with its state set to `value` unless it is already.

    Other `words` for its options make it another widget: the browser knows options by their words alone, so
    under the same key a closed one would go on showing those of before.
    """
    name = f"select-{key}"
    if words is not None:
        name += f"-{zlib.crc32(repr(list(words.items())).encode()):08x}"
    if name not in st.session_state or st.session_state[name] != value:
        st.session_state[name] = value
    return {"key": name, "on_change": _changed, "args": (key, name)}


def _changed(key: str, name: str) -> None:
    value = st.session_state[name]
    value = None if value == "" else tuple(value) if isinstance(value, list) else value
    # Nothing is chosen by the heading of a drop-down, nor on a page that one goes back to, which draws its
    # widgets anew; a selector that always has a value keeps it.
    if value is not None or getattr(_BLANK, key) is None:
        change(**{key: value})


def one_of(
    key: str,
    label: str,
    words: Mapping[str, str],
    *,
    shown: str | None = None,
    help_: str | None = None,
    width_px: int = 0,
) -> None:
    """A drop-down for a selector with one value; `words` says each, and the value "" stands for none chosen.

    A link that chooses none, or what is not offered, has the one that is `shown`, else the first. Of very
    many the first `MOST_OFFERED` are offered, and what the link has chosen. With `width_px` it is a box as
    wide as that, whose label only a screen reader says.
    """
    if not words:
        return
    value = getattr(current(), key) or ""
    value = value if value in words else shown or ""
    value = value if value in words else next(iter(words))
    offered = {name: words[name] for name in (*islice(words, MOST_OFFERED), value)}
    if len(offered) < len(words):
        of_all = (
            f"{units.count(len(offered))} of {units.count(len(words))} are offered; a link opens any other."
        )
        help_ = f"{help_} {of_all}" if help_ else of_all
    widget = _widget(key, value, offered)
    st.selectbox(
        label,
        list(offered),
        format_func=offered.__getitem__,
        help=help_,
        label_visibility="collapsed" if width_px else "visible",
        width=width_px or "stretch",
        **widget,
    )


def segments(key: str, label: str, words: dict[str, str], *, value: str | None = None) -> None:
    """A segmented control for a selector with few fixed values; `words` says each.

    `value` is what the page made of the link's own, where it left the choice to the page.
    """
    widget = _widget(key, getattr(current(), key) if value is None else value, words)
    st.segmented_control(label, list(words), format_func=words.__getitem__, required=True, **widget)


def first_or_more(
    key: str,
    label: str,
    words: Mapping[str, str],
    *,
    first_: Collection[str],
    value: str,
    beside: Callable[[], None] | None = None,
) -> None:
    """A segmented control for those of many fixed values that come `first_`, and a drop-down for the rest,
    with the widgets that stand `beside` it.

    What is chosen from the drop-down stands in the control too.
    """
    first = {name: words[name] for name in (*first_, value) if name in words}
    rest = {"": "More …", **{key: word for key, word in words.items() if key not in first}}
    # Each on a line of its own: beside another widget the control would be cut on a phone.
    segments(key, label, first, value=value)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(rest) > 1:
            st.selectbox(
                f"More of {label}",
                list(rest),
                format_func=rest.__getitem__,
                label_visibility="collapsed",
                width=130,
                **_widget(key, "", rest),
            )
        if beside:
            beside()


def several(key: str, label: str, options: Sequence[str], *, everything: str) -> None:
    """A multi-select for a selector with many values; none chosen means all, which `everything` says."""
    chosen = [item for item in getattr(current(), key) if item in options]
    widget = _widget(key, chosen, dict(zip(options, options, strict=True)))
    st.multiselect(label, options, placeholder=everything, **widget)


def pills(
    key: str, label: str, words: dict[str, str], *, help_: str | None = None, shown: Sequence[str] = ()
) -> None:
    """Pills for a selector with a handful of values; none chosen means all, or what is `shown` then.

    Draw many on a line of their own: there they wrap on a phone, in a row of widgets they would be cut.
    """
    chosen = [item for item in getattr(current(), key) if item in words]
    widget = _widget(key, chosen or list(shown), words)
    st.pills(
        label,
        list(words),
        format_func=lambda value: escaped(shortened(words[value])),
        selection_mode="multi",
        help=help_,
        **widget,
    )


def number(key: str, label: str, bounds: Whole | Decimal, *, help_: str) -> None:
    """A field for a selector with any number within its bounds, two places where it is no whole one."""
    steps: dict[str, Any] = {"step": 1} if isinstance(bounds, Whole) else {"step": 0.5, "format": "%.2f"}
    widget = _widget(key, getattr(current(), key))
    st.number_input(label, bounds.low, bounds.high, help=help_, **steps, **widget)


def day(key: str, label: str, *, first: date, last: date) -> None:
    """A day in UTC, or none."""
    value = getattr(current(), key)
    st.date_input(
        label,
        value=None,
        min_value=min(first, value or first),
        max_value=max(last, value or last),
        format="YYYY-MM-DD",
        **_widget(key, value),
    )


def go(page: Page, **changes: object) -> None:
    """Callback: open `page` with the global selectors kept and `changes` made."""
    open_link(links.move(current(), page, **changes))


def open_link(link: Link) -> None:
    """Callback: open the page of `link`."""
    st.switch_page(st.session_state[_PAGES][link.page], query_params=links.query(link))


def button_to(label: str, page: Page, /, **changes: object) -> None:
    """A button that opens `page` as `go` does, with the icon of that page."""
    st.button(label, icon=PAGES[page].icon, on_click=go, args=(page,), kwargs=changes)


def button_that_changes(label: str, icon: str, /, **changes: object) -> None:
    """A button that shows the current link with `changes`."""
    st.button(label, icon=icon, on_click=change, kwargs=changes)


def register(pages: Mapping[Page, st.Page]) -> None:
    """Tell `go` which Streamlit page stands for which page."""
    st.session_state[_PAGES] = pages
