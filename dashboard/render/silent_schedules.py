"""The dead man's switch: a warning for each schedule that produced nothing for its period."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from compilewatch.dashboard.read.database import reader
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.db.service.schedules import silent_schedules
from compilewatch.db.units import MISSING, moment


def draw() -> None:
    """A warning per silent schedule. Raises DatabaseError."""
    for watch in silent_schedules(reader(), datetime.now(UTC)):
        last = moment(watch.last_result_at) if watch.last_result_at else MISSING
        due = moment(watch.due_at) if watch.due_at else MISSING
        st.warning(
            f"Schedule **{escaped(watch.schedule)}** has produced nothing for its period: "
            f"last result {last}, the next was due by {due}. "
            "Is a service running? `compilewatch schedule list` shows what became of its firings.",
            icon=":material/notifications_off:",
        )
