"""Texts as cells of Markdown (no markup, link, image or mention) and of CSV that stay text.

Frames as rows of JSON values.
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame


_SIGNS = re.compile(r"([\\`*_~\[\]<>|#!&])")
# What GitHub and chat services find without any sign: mentions and bare addresses.
_LINK_SIGNS = re.compile(r"@|:(?=//)|\bwww(?=\.)", re.IGNORECASE)


def escaped_text(text: str) -> str:
    """`text` in one line and without control characters, whatever Markdown would make of it.

    An invisible space (U+200B) keeps the parts of an address apart, and an @ from its name.
    """
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return _LINK_SIGNS.sub(lambda match: f"{match[0]}\N{ZERO WIDTH SPACE}", _SIGNS.sub(r"\\\1", line))


def table_row(*cells: str) -> str:
    """A line of a table of these texts."""
    return f"| {' | '.join(map(escaped_text, cells))} |"


# What a spreadsheet takes for the beginning of a formula, the wide forms in some languages:
# https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001


def harmless(text: str) -> str:
    """`text`, behind an apostrophe where it begins like a formula. For texts alone: a number is none."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of `frame` as JSON values: what is missing is null, times are RFC 3339 in UTC."""
    return [{str(name): plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def plain(value: Any) -> Any:
    """One value of a frame as JSON."""
    if value is None or isinstance(value, dict | list | str | bool):
        return value
    # It takes a while to import, and documents without a frame do without it.
    import pandas as pd

    if pd.isna(value):
        return None
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    number = value.item() if hasattr(value, "item") else value
    return None if isinstance(number, float) and not math.isfinite(number) else number
