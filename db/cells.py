"""Texts as cells of Markdown (no markup, link, image or mention) and of CSV that stay text."""

from __future__ import annotations

import re

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
