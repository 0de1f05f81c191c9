"""What came of a write, said once at the top of the next drawing."""

from __future__ import annotations

import streamlit as st

from dashboard.foreign_text import escaped


def say(key: str, text: str, *, done: bool = True) -> None:
    """Remember what came of the last write on the page `key`."""
    st.session_state[f"told-{key}"] = (text, done)


def tell(key: str) -> None:
    """Say it, once."""
    text, done = st.session_state.pop(f"told-{key}", ("", True))
    if text:
        show = st.success if done else st.warning
        show(escaped(text), icon=":material/check:" if done else ":material/report:")
