"""Guide: questions, words, formulas, how to add a workload, and the judge's constants in force."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import streamlit as st

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.pages.guide.content import policy_part, questions
from compilewatch.dashboard.read.database import in_force
from compilewatch.dashboard.render import streamlit_parts
from compilewatch.dashboard.render.shell import View
from compilewatch.dashboard.text import glossary

_TEXT = Path(__file__).with_name("guide.md")


def draw(view: View) -> Link:
    """The questions, the words, the text of `guide.md`, and the policy."""
    with st.container(width=820):
        st.markdown(f"## Questions\n\n{questions()}")
        st.markdown(f"## Words\n\n{glossary.table()}")
        st.markdown(_text())
        streamlit_parts.draw((policy_part(in_force().policy),))
    return view.link


@lru_cache(maxsize=1)
def _text() -> str:
    return _TEXT.read_text(encoding="utf-8")
