"""Who signs what is written: whoever is signed in, or the name that is typed where there is no login."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from pydantic import ValidationError

from compilewatch.dashboard.login.access import person_here
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.db.errors import CompilewatchError

# What came of a write, said once at the top of the next drawing.


def say(key: str, text: str, *, done: bool = True) -> None:
    """Remember what came of the last write on the page `key`."""
    st.session_state[f"told-{key}"] = (text, done)


def tell(key: str) -> None:
    """Say it, once."""
    text, done = st.session_state.pop(f"told-{key}", ("", True))
    if text:
        show = st.success if done else st.warning
        show(escaped(text), icon=":material/check:" if done else ":material/report:")


NO_NAME = "Type your name: what is written says by whom."
LONGEST_NAME = 80
_REMEMBERED = "signed-as"


def name_field(key: str, label: str = "Your name") -> None:
    """Ask for a name where nobody is signed in; what was typed last is offered again."""
    person = person_here()
    if person.name is not None:
        st.caption(f"Signed as {escaped(person.name)}.")
        return
    st.text_input(
        label,
        value=st.session_state.get(_REMEMBERED, ""),
        max_chars=LONGEST_NAME,
        key=key,
    )


def name_of(key: str) -> str | None:
    """The name to sign with; None where none was typed or it holds what cannot be stored."""
    person = person_here()
    if person.name is not None:
        return person.name
    typed = " ".join(str(st.session_state.get(key, "")).split())[:LONGEST_NAME]
    if not typed or not typed.isprintable():
        return None
    st.session_state[_REMEMBERED] = typed
    return typed


def act(page: str, name_key: str, write: Callable[[str], str]) -> None:
    """Callback: `write` under the name of the field `name_key`; what it says is told on `page`."""
    by = name_of(name_key)
    if by is None:
        say(page, NO_NAME, done=False)
        return
    try:
        say(page, write(by))
    except (CompilewatchError, ValidationError) as error:
        sentence = str(error) if isinstance(error, CompilewatchError) else "This cannot be stored as typed."
        say(page, sentence, done=False)
