"""Guide: the words, the formulas, how to add a workload."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import streamlit as st

from dashboard.links import Link
from dashboard.views.shell import View

_TEXT = Path(__file__).parents[1] / "guide.md"


def draw(view: View) -> Link:
    with st.container(width=820):
        st.markdown(_text())
    return view.link


@lru_cache(maxsize=1)
def _text() -> str:
    return _TEXT.read_text(encoding="utf-8")
