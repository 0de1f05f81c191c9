"""An open page follows the database: it looks whether anything new was stored, and only then draws anew."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

EVERY_S = 8
"""New results are on an open page within twice this time, the drawing included."""


@st.fragment(run_every=EVERY_S)
def follow(pulse: Callable[[], object], seen: object) -> None:
    """Draw the page anew once `pulse` differs from what it was when the page was drawn, which is `seen`.

    A look costs one small query and sends next to nothing; widgets, selections and the place on the page
    stay, since it is the same session that draws again.
    """
    if pulse() != seen:
        st.rerun()
