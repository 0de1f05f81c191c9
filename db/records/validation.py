"""What pydantic complains about, in words for people: no type names of pydantic, no "Input should be"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from compilewatch.db.errors import one_line

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
