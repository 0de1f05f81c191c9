"""Texts as cells and lines of Markdown that stay text: no markup, link, image or mention of anybody."""

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
