"""The one base of every error that may reach a person.

Log lines that nobody can forge: whatever a name or a message holds, one record is one line.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterable
from typing import Any


class CompilewatchError(Exception):
    """Something the user can act on: one sentence and the next step, never a traceback.

    `exit_code` is what the command line returns: 2 for "cannot tell or cannot do it".
    """

    exit_code = 2

    def __init__(self, message: str, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}".strip()


def nearest(word: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The names in `known` that are most like a misspelt `word`, the nearest first; none for a stranger."""
    return difflib.get_close_matches(word, list(known), n=most)


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "", *, most: int = 1) -> str:
    """The question with the `nearest` names, else `otherwise`."""
    near = nearest(word, known, most)
    return f"Did you mean {' or '.join(near)}?" if near else otherwise


def one_line(text: str, limit: int = 200) -> str:
    """`text` from a file or another program, fit for a message: short, and without control characters."""
    shortened = text if len(text) <= limit else f"{text[:limit]}..."
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in shortened
    )


def visible(text: str) -> str:
    """`text` on one line: control characters, and what only turns the reading direction, as escapes."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char == " " else char.encode("unicode_escape").decode() for char in text
    )


# What a terminal obeys or what turns the direction of reading, but for the ends of lines and tabs.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """`text` of any length and any number of lines, with U+FFFD for what a terminal would obey."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


class ConfigError(CompilewatchError):
    """The configuration file, an environment variable or an option is wrong."""


class RecordError(CompilewatchError):
    """A trial record is not one: the message names the place and the field."""


class ConflictError(CompilewatchError):
    """A second record arrived under a known trial id with different content."""


class DatabaseError(CompilewatchError):
    """The database cannot be opened, read or written."""


class NotFoundError(CompilewatchError):
    """What was asked for is not there."""


class UnitError(CompilewatchError):
    """Two numbers of different units or different things were put into one formula."""


class OneLine(logging.Formatter):
    """As its base, but for the message, which stays on its line; a traceback is indented below it."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(_Plain(record))

    def formatException(self, ei: object) -> str:  # noqa: N802 - the name is the base's
        text = super().formatException(ei)  # type: ignore[arg-type]
        return "\n".join(f"    {visible(line)}" for line in text.splitlines())


class _Escaped(logging.LogRecord):
    def getMessage(self) -> str:  # noqa: N802 - the name is the base's
        return visible(super().getMessage())


class OneLineRecord(_Escaped):
    """For `logging.setLogRecordFactory`: one line under every formatter, those of libraries among them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info:
            self.exc_text = OneLine().formatException(self.exc_info)


class _Plain(_Escaped):
    """A record whose message is escaped; everything else is that of `record`."""

    def __init__(self, record: logging.LogRecord) -> None:
        self.__dict__.update(record.__dict__)
