"""Frames as JSON rows, and an answer as JSON or CSV with its entity tag."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from starlette.requests import Request

from compilewatch import __version__
from compilewatch.db.cells import harmless

JSON, CSV = "application/json", "text/csv"
_DTYPE_SCHEMAS = {
    "str": {"type": ["string", "null"]},
    "Int64": {"type": ["integer", "null"]},
    "Float64": {"type": ["number", "null"]},
    "boolean": {"type": ["boolean", "null"]},
    "bool": {"type": "boolean"},
    "datetime64[us, UTC]": {"type": ["string", "null"], "format": "date-time"},
}


@dataclass(frozen=True)
class Answer:
    """`document` is the JSON, `rows` the same as a table of `columns`, `next_cursor` leads to the rest."""

    document: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    columns: Sequence[str]
    next_cursor: str | None = None


MadeAnswer = tuple[bytes, str | None]
"""An `Answer` as it is sent, and its `next_cursor`."""


def made_answer(answer: Answer, media: str) -> MadeAnswer:
    """`answer` as `media`, `JSON` or `CSV`."""
    body = as_csv(answer.columns, answer.rows) if media == CSV else as_json(answer.document)
    return body, answer.next_cursor


def row_schema(frame: pd.DataFrame) -> dict[str, Any]:
    """The JSON Schema of one row of `frame`."""
    return object_schema(
        {str(name): _DTYPE_SCHEMAS.get(str(dtype), {}) for name, dtype in frame.dtypes.items()}
    )


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object with all of `properties` and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def as_json(document: Mapping[str, Any]) -> bytes:
    """`document` without spaces. Raises ValueError for NaN and infinities, which JSON does not have."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def as_csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bytes:
    """A header and a line per row (RFC 4180); what is missing is empty, nested values are JSON.

    Of texts, and of them alone, those that begin like a formula have an apostrophe in front.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    return out.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list | tuple) else value


def media_type(request: Request, wanted: str | None) -> str:
    """JSON or CSV: as `format` says, else the one that the Accept header prefers, JSON among equals."""
    if wanted is not None:
        return CSV if wanted == "csv" else JSON
    accept = request.headers.get("accept", "*/*")
    return CSV if _quality(accept, CSV) > _quality(accept, JSON) else JSON


def _quality(accept: str, offered: str) -> float:
    """How much an Accept header wants `offered`, by its most specific range (RFC 9110, 12.5.1)."""
    ranges = {offered: 3, f"{offered.split('/', maxsplit=1)[0]}/*": 2, "*/*": 1}
    best = (0, 0.0)
    for part in accept.lower().split(","):
        name, _, rest = part.partition(";")
        specificity = ranges.get(name.strip(), 0)
        if specificity > best[0]:
            best = (specificity, _weight(rest))
    return best[1]


def _weight(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def entity_tag(*parts: object) -> str:
    """A weak tag (a proxy may compress) of what an answer depends on, and of this release."""
    digest = hashlib.sha256("\0".join(map(str, (__version__, *parts))).encode(errors="surrogatepass"))
    return f'W/"{digest.hexdigest()[:32]}"'


def unchanged(request: Request, tag: str) -> bool:
    """Whether the client already has the answer with this tag (weak comparison, RFC 9110, 8.8.3.2)."""
    known = [each.strip() for each in request.headers.get("if-none-match", "").split(",")]
    return "*" in known or tag.removeprefix("W/") in {each.removeprefix("W/") for each in known}


def tagged(tag: str, *, is_cacheable: bool = True) -> dict[str, str]:
    """Headers of an answer that may be kept but must be asked for again, or may not even be kept."""
    return {"ETag": tag, "Cache-Control": "no-cache" if is_cacheable else "no-store", "Vary": "Accept"}
