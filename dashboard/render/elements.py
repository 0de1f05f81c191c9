"""Small drawing words shared by the pages: what was picked, notes, empty states, a warning for each schedule
that produced nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from compilewatch.dashboard.read.database import reader
from compilewatch.dashboard.render import exporting
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.db import units
from compilewatch.db.service.schedules import silent_schedules
from compilewatch.db.units import MISSING, moment

Spec = dict[str, Any]
_OTHER_WAYS = {
    "A model of your own:": "compilewatch run -w model.py:step",
    "Results you already have:": "compilewatch import results.jsonl",
    "Six releases of torch and an H100, recorded; nothing is measured:": "compilewatch demo",
}
_SHOWN, _SAID = "shown", "said"
# Streamlit's own grey has a contrast of 3.7 on white; the text around a chart has far more, light or dark.
_TEXT_INK = {"labelColor": "currentColor", "titleColor": "currentColor"}
_INKED: Spec = {
    "axis": {**_TEXT_INK, "labelOpacity": 0.8, "titleOpacity": 0.8},
    "legend": _TEXT_INK,
    "header": _TEXT_INK,
}


# Four states, told apart by a mark as well as by a colour.
_STATES = {
    "bad": ("red", ":material/trending_down:"),
    "good": ("green", ":material/check_circle:"),
    "warning": ("orange", ":material/help:"),
    "": ("gray", ":material/remove:"),
}


def headline(text: str, tone: str) -> None:
    """The answer of a page in large type."""
    st.session_state.setdefault(_SAID, text)
    colour, mark = _STATES[tone]
    st.markdown(f"## :{colour}[{mark}] {unbroken(text)}")


def begin() -> None:
    """Forget what an earlier run of the page drew."""
    st.session_state[_SHOWN] = []
    st.session_state.pop(_SAID, None)


def said() -> str:
    """The first headline that was drawn since `begin`; empty where there was none."""
    return str(st.session_state.get(_SAID, ""))


def shown() -> list[exporting.Shown]:
    """The charts and tables that were drawn since `begin`, from the top."""
    return list(st.session_state.get(_SHOWN, []))


def remember(what: exporting.Shown, values: Sequence[object] = ()) -> None:
    """`what` is drawn now. `values` has what `picked_value` gives for each row of a table."""
    st.session_state.setdefault(_SHOWN, []).append(what)
    st.session_state[_values_of(what.key)] = list(values)


def inked(spec: Spec) -> Spec:
    """`spec` with the text of its axes and legends in the colour of the text around it."""
    own = spec.get("config", {})
    return {**spec, "config": {**own, **{key: {**ink, **own.get(key, {})} for key, ink in _INKED.items()}}}


def picked(key: str) -> dict[str, Any] | None:
    """The fields of the mark that was clicked in the chart `key`, or None."""
    state = st.session_state.get(key)
    chosen = (state or {}).get("selection", {}).get("pick") or []
    return dict(chosen[0]) if chosen else None


def picked_value(key: str) -> Any:
    """What the table `key` was drawn with as the value of the row that was chosen, or None."""
    rows, values = picked_rows(key), row_values(key)
    return values[rows[0]] if rows and rows[0] < len(values) else None


def row_values(key: str) -> list[Any]:
    """What the table `key` was drawn with as the value of each row."""
    return list(st.session_state.get(_values_of(key), []))


def _values_of(key: str) -> str:
    return f"{key}-values"


def picked_rows(key: str) -> list[int]:
    """The positions of the rows that were chosen in the table `key`, from the top."""
    rows = (st.session_state.get(key) or {}).get("selection", {}).get("rows") or []
    return sorted(int(row) for row in rows)


def unbroken(text: str) -> str:
    """`text` as Markdown in which a number and its unit stay on one line."""
    return escaped(text).replace(" %", "\u00a0%")


def note(text: str) -> None:
    """A sentence in small grey letters; it may hold foreign strings."""
    st.caption(escaped(text))


def notes(lines: Sequence[str]) -> None:
    """Sentences below each other, as one block."""
    if lines:
        st.caption("  \n".join(escaped(line) for line in lines))


def part(title: str) -> DeltaGenerator:
    """A box with a title, to be filled as a context."""
    box = st.container(border=True)
    box.markdown(f"### {unbroken(title)}")
    return box


def pairs(texts: Mapping[str, str | None]) -> None:
    """A compact list of names and texts, both shown as they are, a missing text as a dash."""
    # A long name, as of a variable of the environment, may break where it has an underscore: on a phone it
    # would leave no room for the text.
    shown = {
        escaped(name).replace("_", "_\N{ZERO WIDTH SPACE}"): escaped(text or units.MISSING)
        for name, text in texts.items()
    }
    st.table(shown, border="horizontal")


def nothing_to_show(reason: str, *, next_step: str = "") -> None:
    """In the place of what has no data: why, and what to do. Both may hold foreign strings."""
    st.info(f"{escaped(reason)} {escaped(next_step)}".strip(), icon=":material/filter_alt_off:")


def nothing_measured() -> None:
    """The empty state of a new database: the command to copy, and what else could be."""
    with st.container(border=True):
        st.markdown("## Nothing has been measured yet")
        st.markdown(
            "Measure the smoke suite on this machine. It takes a few minutes; this page fills by itself."
        )
        st.code("compilewatch run --suite smoke", language=None)
        with st.expander("Other ways to begin"):
            for way, command in _OTHER_WAYS.items():
                st.markdown(way)
                st.code(command, language=None)


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
