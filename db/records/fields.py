"""The types of the record's fields: what a number, a name, a text or a time may hold, and the base of its
parts.

PostgreSQL stores no NUL character, UTF-8 no lone surrogate, and JSON no NaN. Pydantic refuses surrogates in
every string; names and keys with a NUL are refused too. Free text was written by other programs (log tails,
exception messages): there both become U+FFFD, so that no failure report is lost over them.

What pydantic complains about, in words for people: no type names of pydantic, no "Input should be".
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from compilewatch.db.errors import one_line

INT64_MAX = 2**63 - 1

WITHOUT_NUL = r"^[^\x00]*$"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NUMBER = re.compile(r"\s*[+-]?[0-9.eE_]+\s*")
_MAX_NESTING = 16


def aware_utc(value: datetime) -> datetime:
    """The same moment in UTC. Raises ValueError without a time zone and outside of the years 1 to 9999."""
    if value.tzinfo is None:
        raise ValueError("must carry a time zone")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("lies outside the years 1 to 9999 in UTC") from None


def moment_text(value: object) -> object:
    """`value`, unless it is a number in whatever form, which pydantic would take for seconds since 1970."""
    if isinstance(value, int | float) or (isinstance(value, str) and _NUMBER.fullmatch(value)):
        raise ValueError("must be a time such as 2026-11-20T18:00:00Z")
    return value


def repaired(value: object) -> object:
    """`value` with what no database stores as U+FFFD, where it is text."""
    return _UNSTORABLE.sub("\ufffd", value) if isinstance(value, str) else value


def _check_plain_scalar(value: object) -> None:
    if isinstance(value, str) and _UNSTORABLE.search(value):
        raise ValueError("holds a NUL character or a lone surrogate")
    if isinstance(value, int) and abs(value) > INT64_MAX:
        raise ValueError("holds an integer of more than 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("holds a number that is not finite")
    if value is not None and not isinstance(value, str | int | float):
        raise ValueError(f"holds a {type(value).__name__}, which is not JSON")


def _check_plain_json(value: object, depth: int = 0) -> None:
    if depth > _MAX_NESTING:
        raise ValueError(f"is nested more than {_MAX_NESTING} deep")
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("holds a key that is not text")
        for part in (*value.keys(), *value.values()):
            _check_plain_json(part, depth + 1)
    elif isinstance(value, list):
        for part in value:
            _check_plain_json(part, depth + 1)
    else:
        _check_plain_scalar(value)


def _plain_json(value: dict[str, Any]) -> dict[str, Any]:
    _check_plain_json(value)
    return value


def unsigned_zero(value: float) -> float:
    """0.0 for -0.0, which a column of SQLite does not keep apart: an identity follows from the text."""
    return value + 0.0


UtcDatetime = Annotated[datetime, BeforeValidator(moment_text), AfterValidator(aware_utc)]
# Strict: neither "12" nor true nor 12.0 is a whole number, as no other format takes them either.
Nanoseconds = Annotated[int, Field(strict=True, ge=0, le=INT64_MAX)]
Latency = Annotated[int, Field(strict=True, ge=1, le=INT64_MAX)]
"""Nanoseconds of something that was executed, which takes some."""
Bytes = Annotated[int, Field(strict=True, ge=0, le=INT64_MAX)]
Count = Annotated[int, Field(strict=True, ge=0, le=INT64_MAX)]
Integer = Annotated[int, Field(strict=True, ge=-INT64_MAX, le=INT64_MAX)]
Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]
IdentifyingNumber = Annotated[Finite, AfterValidator(unsigned_zero)]
Flag = Annotated[bool, Field(strict=True)]
Fraction = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Triple = Annotated[list[Finite], Field(min_length=3, max_length=3)]
# Files and directories are named by it: neither ".." nor what a command would take for an option is one.
Identifier = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]*$")]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
SourceHash = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=WITHOUT_NUL)]
Key = Annotated[str, Field(max_length=200, pattern=WITHOUT_NUL)]
Text = Annotated[str, BeforeValidator(repaired), Field(max_length=10_000)]
LogTail = Annotated[str, BeforeValidator(repaired), Field(max_length=65_536)]
JsonObject = Annotated[dict[str, Any], AfterValidator(_plain_json)]


class Closed(BaseModel):
    """Base of what is immutable, described field by field, and refuses a key that it does not name."""

    # Most commands need few of them: what validates one is built where the first is made.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, use_attribute_docstrings=True)


class Record(Closed):
    """Base of every part of a trial record."""


_LONGEST = 60

# What a value must be, by pydantic's error type; {} are filled from the error's context.
_MUST_BE = {
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "a whole number"),
    "int_parsing_size": "a whole number of fewer digits",
    **dict.fromkeys(("float_parsing", "float_type"), "a number"),
    "finite_number": "a finite number",
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    "string_type": "text",
    "string_unicode": "text in UTF-8",
    "string_too_short": "text that is not empty",
    "string_too_long": "text of at most {max_length} characters",
    "string_pattern_mismatch": "text of the pattern {pattern}",
    **dict.fromkeys(
        ("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "datetime_object_invalid"),
        "a time such as 2026-11-20T18:00:00Z",
    ),
    "timezone_aware": "a time with its zone",
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    "too_short": "a list with at least {min_length} entry",
    "too_long": "a list of at most {max_length} entries",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "a table"),
    "path_type": "a path",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    **dict.fromkeys(("literal_error", "enum"), "{expected}"),
}


def must_be(kind: str, context: Mapping[str, Any]) -> str | None:
    """What a value must be, as "a whole number", by pydantic's error type; None where that says nothing."""
    template = _MUST_BE.get(kind)
    return template.format(**context) if template else None


def problem(details: Mapping[str, Any]) -> str:
    """What is wrong with one value, to be read after its name: "must be a whole number, not 'x'".

    `details`: an entry of `ValidationError.errors()`.
    """
    kind, context = details["type"], details.get("ctx", {})
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "is none of the known keys"
    if kind == "json_invalid":
        return f"is not JSON: {context['error']}"
    if kind == "value_error":
        return str(context["error"]).removesuffix(".")
    wanted = must_be(kind, context)
    if wanted is None:
        return f"is wrong: {details['msg']}"
    return f"must be {wanted}, not {_shown(details['input'])}"


def _shown(value: object) -> str:
    """A value that was given, short; of what may be large only what it is."""
    match value:
        case None:
            return "null"
        case str():
            return one_line(repr(value[:_LONGEST]))
        case list() | tuple() | set():
            return "a list"
        case dict():
            return "a table"
        case int() if value.bit_length() > _LONGEST:
            return "a number of many digits"
    return one_line(repr(value), _LONGEST)


def first_problem(error: ValidationError, whole: str) -> str:
    """The first problem as half a sentence that names the field, or `whole` where all of it is wrong.

    What a file or another program wrote may be in it: it is one line, and short.
    """
    details = error.errors(include_url=False)[0]
    name = one_line(".".join(str(part) for part in details["loc"])) or whole
    # A check of ours says it in words of its own, which may be a sentence.
    between = ": " if details["type"] == "value_error" else " "
    return f"{name}{between}{one_line(problem(details), 400)}"
