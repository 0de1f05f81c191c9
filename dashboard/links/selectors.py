"""How one selector of a link is read from a URL and written to it. Knows no key and no page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

ALL = "all"
LONGEST_QUOTE = 60

T = TypeVar("T")


class BadValueError(ValueError):
    """A value in a link means nothing; the message is a sentence, `instead` the nearest valid value."""

    def __init__(self, message: str, instead: object) -> None:
        super().__init__(message)
        self.instead = instead


def quoted(text: str) -> str:
    """`text` as it may stand in a sentence: shortened, control characters removed."""
    clean = "".join(char if char.isprintable() else " " for char in text)
    short = clean if len(clean) <= LONGEST_QUOTE else clean[: LONGEST_QUOTE - 1] + "…"
    return f"“{short}”"


@dataclass(frozen=True)
class Text:
    """One name or id. None means the page's own default and is written `all`.

    A name that really is `all` is written twice, so that the two can be told apart.
    """

    default: str | None = None

    def read(self, values: Sequence[str]) -> str | None:
        if len(values) > 1 and set(values) == {ALL}:
            return ALL
        return _only(values, lambda text: None if text in {ALL, ""} else text)

    def write(self, value: str | None) -> list[str]:
        if value is None:
            return [ALL]
        return [ALL, ALL] if value == ALL else [value]


@dataclass(frozen=True)
class Texts:
    """Any number of names, in order, as a repeated key. The empty tuple means all of them."""

    default: tuple[str, ...] = ()

    def read(self, values: Sequence[str]) -> tuple[str, ...]:
        if list(values) == [ALL]:
            return ()
        return tuple(dict.fromkeys(value for value in values if value))

    def write(self, value: tuple[str, ...]) -> list[str]:
        if not value:
            return [ALL]
        return [ALL, ALL] if value == (ALL,) else list(value)


@dataclass(frozen=True)
class Choice:
    """One of a few fixed words."""

    options: tuple[str, ...]
    default: str

    def read(self, values: Sequence[str]) -> str:
        return _only(values, self._one)

    def _one(self, text: str) -> str:
        if text in self.options:
            return text
        raise BadValueError(
            f"{quoted(text)} is none of {', '.join(self.options)}; using {self.default}", self.default
        )

    def write(self, value: str) -> list[str]:
        return [value]


@dataclass(frozen=True)
class Choices:
    """Any number of a few fixed words. The empty tuple means all of them."""

    options: tuple[str, ...]
    default: tuple[str, ...] = ()

    def read(self, values: Sequence[str]) -> tuple[str, ...]:
        if list(values) == [ALL]:
            return ()
        items = tuple(dict.fromkeys(values))
        good = tuple(value for value in items if value in self.options)
        if good != items:
            bad = ", ".join(quoted(value) for value in items if value not in self.options)
            raise BadValueError(f"{bad} is none of {', '.join(self.options)}", good)
        return good

    def write(self, value: tuple[str, ...]) -> list[str]:
        return list(value) or [ALL]


@dataclass(frozen=True)
class Whole:
    """A whole number within bounds; a value outside is moved to the nearest bound, and that is said."""

    default: int
    low: int
    high: int

    def read(self, values: Sequence[str]) -> int:
        return _only(values, self._one)

    def _one(self, text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise BadValueError(
                f"{quoted(text)} is not a whole number; using {self.default:,}", self.default
            ) from None
        return int(_clamped(number, self.low, self.high))

    def write(self, value: int) -> list[str]:
        return [str(value)]


@dataclass(frozen=True)
class Decimal:
    """A finite number within bounds, treated as `Whole` treats its own."""

    default: float
    low: float
    high: float

    def read(self, values: Sequence[str]) -> float:
        return _only(values, self._one)

    def _one(self, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            raise BadValueError(f"{quoted(text)} is not a number; using {self.default:g}", self.default)
        return float(_clamped(number, self.low, self.high))

    def write(self, value: float) -> list[str]:
        return [repr(float(value))]


@dataclass(frozen=True)
class Day:
    """A calendar day in UTC, `2026-11-20`; None means no limit and is written `all`."""

    default: date | None = None

    def read(self, values: Sequence[str]) -> date | None:
        return _only(values, self._one)

    def _one(self, text: str) -> date | None:
        if text in {ALL, ""}:
            return None
        try:
            return date.fromisoformat(text)
        except ValueError:
            raise BadValueError(
                f"{quoted(text)} is not a day like 2026-11-20; no limit is set", None
            ) from None

    def write(self, value: date | None) -> list[str]:
        return [ALL if value is None else value.isoformat()]


@dataclass(frozen=True)
class DataVersion:
    """The data version that a link was made at; None where it tells none."""

    def read(self, values: Sequence[str]) -> int | None:
        return _only(values, self._one)

    def _one(self, text: str) -> int | None:
        if text.isdecimal() and len(text) < 19:
            return int(text)
        raise BadValueError(f"{quoted(text)} is no data version and was ignored", None)


Selector = Text | Texts | Choice | Choices | Whole | Decimal | Day


def _only(values: Sequence[str], read: Callable[[str], T]) -> T:
    """What the first of `values` stands for. Raises BadValueError where another one is left out."""
    alone = len(set(values)) == 1
    try:
        first = read(values[0])
    except BadValueError as error:
        if alone:
            raise
        raise BadValueError(f"only one value is possible, and {error}", error.instead) from None
    if not alone:
        raise BadValueError(f"only one value is possible; using {quoted(values[0])}", first)
    return first


def _clamped(number: float, low: float, high: float) -> float:
    nearest = min(max(number, low), high)
    if nearest != number:
        raise BadValueError(f"it must lie between {low:,} and {high:,}; using {nearest:,}", nearest)
    return number
