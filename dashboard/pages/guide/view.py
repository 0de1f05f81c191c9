"""Guide: the words, the formulas, how to add a workload, and the judge's constants in force."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pandas as pd
import streamlit as st

from dashboard.links.links import Link
from dashboard.read.policy import policy_in_force
from dashboard.render import elements
from dashboard.render.shell import View
from db.judge.policy import Policy, policy_entries

_TEXT = Path(__file__).with_name("guide.md")


def draw(view: View) -> Link:
    """The text of `guide.md`, and the policy."""
    with st.container(width=820):
        st.markdown(_text())
        st.markdown("## Policy in force")
        st.markdown(
            "When a change counts as real: the judge's constants, set under `[policy]` in the configuration."
        )
        elements.table(
            _policy(policy_in_force()),
            {
                "constant": st.column_config.TextColumn("Constant", pinned=True),
                "value": "Value",
                "meaning": st.column_config.TextColumn("Meaning and source", width="large"),
            },
            key="policy",
            alt="Every constant of the judge with its value, meaning and source",
        )
    return view.link


def _policy(policy: Policy) -> pd.DataFrame:
    entries = policy_entries(policy)
    return pd.DataFrame(
        {
            "constant": [entry.name for entry in entries],
            "value": [entry.value for entry in entries],
            "meaning": [entry.meaning for entry in entries],
        }
    )


@lru_cache(maxsize=1)
def _text() -> str:
    return _TEXT.read_text(encoding="utf-8")
