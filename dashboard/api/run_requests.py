"""Run requests over HTTP: the list of them, and the one route that writes, for tokens of its own scope."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import pandas as pd
from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from dashboard.api.representation import JSON, as_json
from dashboard.api.stored import Listing
from dashboard.http.errors import SEE_DOCUMENT, ParameterError, error_response
from dashboard.links.values import JsonSchema
from dashboard.login.gate import CHALLENGE, api_token_of
from dashboard.read.database import reader
from dashboard.write.run_actions import queue_request
from db.engine.session import Database
from db.queries.data_version import service_pulse
from db.queries.service import schedules
from db.queries.service.access import token_of
from db.queries.service.hosts import unserved
from db.records.access import Scope
from db.records.requests import RequestSpec, RunRequest

REQUEST_SCHEMA: Literal["compilewatch.api.request/1"] = "compilewatch.api.request/1"
MOST_BYTES = 64 * 1024
_COLUMNS = {
    **dict.fromkeys(("request_id", "state", "kind"), "str"),
    "spec": "object",
    "asked_by": "str",
    "asked_at": "datetime64[us, UTC]",
    **dict.fromkeys(("owner", "note", "unserved"), "str"),
    "run_ids": "object",
}


def _frame(requests: list[RunRequest], waiting: dict[str, str]) -> pd.DataFrame:
    rows = [
        each.model_dump(mode="json")
        | {
            "asked_at": each.asked_at,
            "note": each.history[-1].note if each.history else None,
            "unserved": waiting.get(each.request_id),
        }
        for each in requests
    ]
    return pd.DataFrame(
        {name: pd.Series([row[name] for row in rows], dtype=dtype) for name, dtype in _COLUMNS.items()}
    )


def _requests(database: Database) -> pd.DataFrame:
    """One row per request, newest first; `unserved` says why a queued one is taken by nobody."""
    requests = schedules.requests(database)
    return _frame(requests, unserved(database, requests, datetime.now(UTC)))


def freshness(database: Database) -> object:
    """What the list depends on; that a host fell silent counts once a minute."""
    return str((service_pulse(database), datetime.now(UTC).replace(second=0, microsecond=0)))


REQUESTS = Listing("requests", "request_id", _requests, moment="asked_at")


class RequestAnswer(BaseModel):
    """What was queued, and why nobody takes it now, if so."""

    model_config = ConfigDict(extra="forbid", serialize_by_alias=True, populate_by_name=True)

    schema_: Annotated[Literal["compilewatch.api.request/1"], Field(alias="schema")] = REQUEST_SCHEMA
    request: RunRequest
    unserved: str | None


async def create(request: Request) -> Response:
    """Queue what the body, a `RequestSpec` as JSON, wants measured: 201 with its row.

    Names are data: the host that measures looks them up in its own configuration and refuses others.
    Raises CompilewatchError.
    """
    secret = api_token_of(request.headers)
    token = None if secret is None else await to_thread.run_sync(lambda: token_of(reader(), secret))
    now = datetime.now(UTC)
    if token is None or token.has_ended(now):
        return error_response(
            401,
            "A run request needs an API token.",
            "Make one with `compilewatch token create NAME --scope requests`.",
            CHALLENGE,
        )
    if not token.opens(Scope.REQUESTS, now):
        return error_response(
            403,
            "The API token does not open this.",
            "Make one with --scope requests: it is the only one that writes.",
        )
    spec = _spec_of(await _body(request))
    row = await to_thread.run_sync(_queued, spec, f"token {token.name}")
    return Response(as_json(row), 201, media_type=JSON, headers={"Cache-Control": "no-store"})


def _queued(spec: RequestSpec, by: str) -> dict[str, Any]:
    queued, waiting = queue_request(spec, by=by)
    return RequestAnswer(request=queued, unserved=waiting).model_dump(mode="json")


def create_schema() -> JsonSchema:
    """The JSON Schema of what `create` answers."""
    return RequestAnswer.model_json_schema(mode="serialization")


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise ParameterError(f"The body is longer than {MOST_BYTES:,} bytes.", SEE_DOCUMENT)
    return body


def _spec_of(body: bytes) -> RequestSpec:
    try:
        return RequestSpec.model_validate_json(body)
    except ValidationError as error:
        wrong = error.errors()[0]
    where = ".".join(map(str, wrong["loc"])) or "The body"
    known = ", ".join(RequestSpec.model_fields)
    raise ParameterError(f"{where}: {wrong['msg']}.", f"Send JSON with any of {known}.")
