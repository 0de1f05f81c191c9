"""What stands in an address, for links of pages and for the API alike: each kind of value, read strictly.

`One` and `Several` make pydantic read a key of a query string by its kind. A value that is none is an error
of pydantic with two sentences: what it must be, for the API, and which valid value is taken instead, for a
page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from compilewatch.db.errors import visible

JsonSchema = dict[str, Any]
ALL = "all"
"""No restriction. A name that really is `all` is written twice, so that the two can be told apart."""
LONGEST_TEXT = 500
LONGEST_QUOTE = 60
# PostgreSQL refuses NUL, so nothing stored has one; every other character may be part of a name.
_TEXT = re.compile(r"^[^\x00]+$")
# int() would also take underscores, spaces and the digits of every script; of 4,300 digits it raises
_WHOLE = re.compile(r"-?[0-9]{1,999}")
_DECIMAL = re.compile(r"[-+0-9.eE]+|-?inf")
_RFC_3339 = re.compile(r"^\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d))?$")


def quoted(text: str) -> str:
    """`text` as it may stand in a sentence: shortened, control characters as escapes."""
    clean = visible(text)
    short = clean if len(clean) <= LONGEST_QUOTE else clean[: LONGEST_QUOTE - 1] + "…"
    return f"“{short}”"


class BadValueError(ValueError):
    """A text is no value of its kind: it `must` be something, a page `said` so and takes `instead`."""

    def __init__(self, must: str, said: str, instead: object = None) -> None:
        super().__init__(must)
        self.must, self.said, self.instead = must, said, instead


@dataclass(frozen=True)
class Text:
    """A name or an id."""

    @property
    def schema(self) -> JsonSchema:
        return {"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT, "pattern": _TEXT.pattern}

    def read(self, text: str) -> str:
        if not text or len(text) > LONGEST_TEXT or not _TEXT.match(text):
            must = f"must be 1 to {LONGEST_TEXT} characters, none of them NUL"
            raise BadValueError(must, f"{quoted(text)} is no name and was ignored")
        return text


@dataclass(frozen=True)
class Word:
    """One of a few fixed words; a page takes `default` in the place of another one."""

    options: tuple[str, ...]
    default: str | None = None

    @property
    def schema(self) -> JsonSchema:
        return {"type": "string", "enum": [str(option) for option in self.options]}

    def read(self, text: str) -> str:
        if text not in self.options:
            must = f"must be one of {', '.join(self.options)}, not {quoted(text)}"
            using = f"; using {self.default}" if self.default else ""
            problem = f"{quoted(text)} is none of {', '.join(self.options)}{using}"
            raise BadValueError(must, problem, self.default)
        return text


@dataclass(frozen=True)
class Whole:
    """A whole number from `low` to `high`; a page moves one outside to the nearest bound."""

    low: int
    high: int
    default: int = 0

    @property
    def schema(self) -> JsonSchema:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}

    def read(self, text: str) -> int:
        must = f"must be a whole number from {self.low:,} to {self.high:,}, not {quoted(text)}"
        if not _WHOLE.fullmatch(text):
            problem = f"{quoted(text)} is not a whole number; using {self.default:,}"
            raise BadValueError(must, problem, self.default)
        return int(_within(int(text), self.low, self.high, must))


@dataclass(frozen=True)
class Decimal:
    """A finite number within bounds, treated as `Whole` treats its own."""

    low: float
    high: float
    default: float = 0.0

    @property
    def schema(self) -> JsonSchema:
        return {"type": "number", "minimum": self.low, "maximum": self.high}

    def read(self, text: str) -> float:
        must = f"must be a number from {self.low:g} to {self.high:g}, not {quoted(text)}"
        try:
            number = float(text) if _DECIMAL.fullmatch(text) else math.nan
        except ValueError:
            number = math.nan
        if math.isnan(number):
            problem = f"{quoted(text)} is not a number; using {self.default:g}"
            raise BadValueError(must, problem, self.default)
        return float(_within(number, self.low, self.high, must))


@dataclass(frozen=True)
class Day:
    """A calendar day in UTC, `2026-11-20`."""

    @property
    def schema(self) -> JsonSchema:
        return {"type": "string", "format": "date", "examples": ["2026-11-20"]}

    def read(self, text: str) -> date:
        try:
            return date.fromisoformat(text)
        except ValueError:
            raise BadValueError(
                f"must be like 2026-11-20, not {quoted(text)}",
                f"{quoted(text)} is not a day like 2026-11-20; no limit is set",
            ) from None


@dataclass(frozen=True)
class Moment:
    """A day or a time; `ends` says whether a day means its last moment rather than its first."""

    ends: bool = False

    @property
    def schema(self) -> JsonSchema:
        return {
            "type": "string",
            "anyOf": [{"format": "date"}, {"format": "date-time"}],
            "examples": ["2026-11-20", "2026-11-20T18:00:00Z"],
        }

    def read(self, text: str) -> datetime:
        # fromisoformat() alone would also take weeks, times without a zone and any separator
        moment = _parsed(text) if _RFC_3339.match(text) else None
        if moment is None:
            must = f"must be like 2026-11-20 or 2026-11-20T18:00:00Z, not {quoted(text)}"
            raise BadValueError(must, f"{quoted(text)} is no moment and was ignored")
        if isinstance(moment, datetime):
            return _in_utc(moment)
        return datetime.combine(moment, time.max if self.ends else time.min, UTC)


@dataclass(frozen=True)
class DataVersion:
    """The data version that a link was made at."""

    @property
    def schema(self) -> JsonSchema:
        return {"type": "integer", "minimum": 0}

    def read(self, text: str) -> int:
        if text.isdecimal() and len(text) < 19:
            return int(text)
        raise BadValueError("must be a data version", f"{quoted(text)} is no data version and was ignored")


Kind = Text | Word | Whole | Decimal | Day | Moment | DataVersion


@dataclass(frozen=True)
class One:
    """A key with one value of `kind`. Of a page's address, whose values come as a list, all but the first are
    left out. Where it is `open`, `all` and nothing mean None there.
    """

    kind: Kind
    open: bool = False

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(self._read, handler(source))

    def __get_pydantic_json_schema__(self, _: core_schema.CoreSchema, __: GetJsonSchemaHandler) -> JsonSchema:
        return self.kind.schema

    def _read(self, value: Any) -> Any:
        if isinstance(value, str):
            return _checked(self.kind.read, value)
        return _checked(self._first, value) if isinstance(value, list) else value

    def _first(self, values: Sequence[str]) -> Any:
        if self.open and len(values) > 1 and set(values) == {ALL}:
            return ALL
        alone = len(set(values)) == 1
        try:
            first = None if self.open and values[0] in {ALL, ""} else self.kind.read(values[0])
        except BadValueError as error:
            if alone:
                raise
            problem = f"only one value is possible, and {error.said}"
            raise BadValueError(error.must, problem, error.instead) from None
        if not alone:
            problem = f"only one value is possible; using {quoted(values[0])}"
            raise BadValueError("can be given only once", problem, first)
        return first


@dataclass(frozen=True)
class Several:
    """A key that may be repeated, each value of `kind`; `all` means no restriction."""

    kind: Kind

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(self._read, handler(source))

    def __get_pydantic_json_schema__(self, _: core_schema.CoreSchema, __: GetJsonSchemaHandler) -> JsonSchema:
        return {"type": "array", "items": self.kind.schema}

    def _read(self, value: Any) -> Any:
        return _checked(self._each, value) if isinstance(value, list) else value

    def _each(self, values: list[str]) -> tuple[Any, ...]:
        if values == [ALL]:
            return ()
        good, wrong = [], []
        for value in dict.fromkeys(values):
            try:
                good.append(self.kind.read(value))
            except BadValueError as error:
                wrong.append((value, error))
        if not wrong:
            return tuple(good)
        first = wrong[0][1]
        problem = first.said.replace(quoted(wrong[0][0]), ", ".join(quoted(value) for value, _ in wrong), 1)
        raise BadValueError(first.must, problem, tuple(good))


def texts_of(value: Any) -> list[str]:
    """`value` of a link as an address has it."""
    if value is None or value == ():
        return [ALL]
    if isinstance(value, tuple):
        return [ALL, ALL] if value == (ALL,) else [str(each) for each in value]
    if isinstance(value, float):
        return [repr(value)]
    return [ALL, ALL] if value == ALL else [str(value)]


BAD_VALUE = "bad_value"


def _checked(read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except BadValueError as error:
        context = {"must": error.must, "said": error.said, "instead": error.instead}
        raise PydanticCustomError(BAD_VALUE, "{must}", context) from None


def _within(number: float, low: float, high: float, must: str) -> float:
    nearest = min(max(number, low), high)
    if nearest != number:
        problem = f"it must lie between {low:,} and {high:,}; using {nearest:,}"
        raise BadValueError(must, problem, type(low)(nearest))
    return number


def _parsed(text: str) -> datetime | date | None:
    try:
        if len(text) == 10:
            return date.fromisoformat(text)
        # RFC 3339 allows a leap second, Python does not.
        return datetime.fromisoformat(re.sub(r":60(?=[.Z+-])", ":59", text.upper()))
    except ValueError:
        return None


def _in_utc(moment: datetime) -> datetime:
    """`moment` in UTC; where that lies outside the years 1 to 9999, the nearest moment inside."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return moment.replace(tzinfo=UTC)
