"""The frame of Models: which model, what is known of it, and its tabs, each a page of its own address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import streamlit as st

from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import MODELS, PAGES, Page
from compilewatch.dashboard.parts.model import FACTS
from compilewatch.dashboard.parts.parts import Lines, PageContent, Part, named
from compilewatch.dashboard.render import controls
from compilewatch.dashboard.render.shell import View, say_focus
from compilewatch.dashboard.text.foreign_text import escaped

_OF_ALL, _OF_ONE = "All models", "History"
"""What the first tab is called, of all models and of one."""
_CHANGES = "changes-of-tab"


@contextmanager
def tab(view: View, page: PageContent, models: Iterable[str]) -> Iterator[tuple[Part, ...]]:
    """Draw what stands above the tabs, and give the parts that are left; what is drawn within is in the open
    one. `models` are those to choose from.
    """
    focus = page.link.focus
    # A page that opens on a model of its own choice has no list of all.
    every = {"": "All models"} if focus is None or view.link.focus else {}
    controls.one_of("focus", "Model", every | {name: name for name in models}, shown=focus, width_px=260)
    say_focus(view.link, page.link)
    for part in named(page.parts, FACTS):
        if isinstance(part, Lines):
            st.markdown(escaped(" ".join(part.lines)))
    here = view.link.page
    words = {each: PAGES[each].title for each in MODELS} | {Page.WORKLOAD: _OF_ONE if focus else _OF_ALL}
    # New after each change of tab: the browser would tell a page that one goes back to what it was left by.
    key = f"tabs-{here.value}-{st.session_state.get(_CHANGES, 0)}"
    st.session_state[key] = words[here]
    tabs = st.tabs(list(words.values()), key=key, on_change=_go, args=(key, {words[to]: to for to in words}))
    with tabs[MODELS.index(here)]:
        yield tuple(part for part in page.parts if part.key != FACTS)


def _go(key: str, pages: dict[str, Page]) -> None:
    """Callback: open the tab that was chosen, with all that means anything there."""
    target = links.beside(controls.current(), pages[st.session_state[key]])
    st.session_state[_CHANGES] = st.session_state.get(_CHANGES, 0) + 1
    controls.open_link(target)
