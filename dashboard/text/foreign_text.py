"""Texts from outside made fit to be shown: names and notes may hold any character and any length."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from compilewatch.db.errors import visible

_MARKDOWN = str.maketrans({char: f"\\{char}" for char in "\\`*_{}[]()#+-!|<>~$:^&"})
# Markdown makes links of bare addresses, whatever is escaped in them. A word joiner, which nobody sees, keeps
# the parts apart.
_ADDRESS = re.compile(r"(?<=https:)(?=//)|(?<=http:)(?=//)|(?<=www)(?=\.)|(?<=@)", re.IGNORECASE)
# Streamlit looks for icons and emoji after Markdown has taken the escapes away.
_ICON = re.compile(r"(?<=:)(?=[\w+-]+(?:/\w+)?:)")
_WORD_JOINER = "\u2060"
# How our sentences name what is to be typed: a command, an option of a workload.
_COMMAND = re.compile(r"`(compilewatch [^`]{1,200}|[a-z]{1,20}_[a-z_]{1,20})`")
LONGEST_LABEL = 40


def readable(text: str) -> str:
    """`text` in one line, what controls terminals or turns the direction of writing as escapes.

    A name that turns the direction would turn the sentence around it, and Vega refuses line separators.
    """
    return visible(" ".join(text.split()))


def escaped(text: str) -> str:
    """`text` so that Streamlit's Markdown shows it as it is, but for commands and words between backticks,
    which are shown as code.
    """
    pieces = _COMMAND.split(readable(text))
    return "".join(f"`{piece}`" if place % 2 else _plain(piece) for place, piece in enumerate(pieces))


def unticked(text: str) -> str:
    """`text` for where there is no Markdown: commands and words without the backticks around them."""
    return _COMMAND.sub(r"\1", text) if "`" in text else text


def _plain(text: str) -> str:
    return _ICON.sub(_WORD_JOINER, _ADDRESS.sub(_WORD_JOINER, text)).translate(_MARKDOWN)


def shortened(text: str) -> str:
    """`text` as it may stand on a button."""
    line = readable(text)
    return line if len(line) <= LONGEST_LABEL else f"{line[: LONGEST_LABEL - 1]}…"


def readable_spec(value: Any) -> Any:
    """A chart's specification with every text in it readable; the same object where all are."""
    if isinstance(value, str):
        return value if value.isprintable() else readable(value)
    if isinstance(value, dict):
        made = {readable_spec(key): readable_spec(each) for key, each in value.items()}
        return value if all(made.get(key) is each for key, each in value.items()) else made
    if isinstance(value, list | tuple):
        items = [readable_spec(each) for each in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def readable_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of a chart with every text readable; the same frame where all are."""
    changes: dict[str, dict[str, str]] = {}
    for name, column in frame.items():
        if isinstance(column.dtype, pd.StringDtype) or column.dtype == object:
            odd = {
                text: readable(text)
                for text in column.unique()
                if isinstance(text, str) and not text.isprintable()
            }
            if odd:
                changes[str(name)] = odd
    return (
        frame.assign(**{name: frame[name].replace(odd) for name, odd in changes.items()})
        if changes
        else frame
    )
