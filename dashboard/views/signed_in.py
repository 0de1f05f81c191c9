"""Who is signed in, at the foot of the sidebar, and the way out."""

from __future__ import annotations

import streamlit as st

from dashboard.access import person_here, sign_out_path
from dashboard.foreign_text import escaped


def draw() -> None:
    """Nothing where there is no login."""
    person = person_here()
    if person.name is None:
        return
    st.caption(f"{escaped(person.name)} · {person.role.value}")
    if path := sign_out_path():
        st.link_button("Sign out", path, icon=":material/logout:", type="tertiary")
