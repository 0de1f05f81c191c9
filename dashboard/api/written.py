"""What a program writes: who may, what the body holds, and the answer; run requests and annotations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal, TypeVar

import pandas as pd
from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from compilewatch.dashboard.api.queries import with_ids
from compilewatch.dashboard.api.representation import JSON, as_json
from compilewatch.dashboard.api.stored import Listing
from compilewatch.dashboard.http.errors import SEE_DOCUMENT, ParameterError, error_response
from compilewatch.dashboard.login.middleware import CHALLENGE, api_token_of
from compilewatch.dashboard.read.database import reader
from compilewatch.dashboard.write.writing import queue_request, save
from compilewatch.db.engine.session import Database
from compilewatch.db.queries.data_version import service_pulse
from compilewatch.db.records.access import Scope
from compilewatch.db.records.fields import problem
from compilewatch.db.records.people import LONGEST_TEXT, Annotation
from compilewatch.db.records.requests import RequestSpec, RunRequest
from compilewatch.db.service import requests as run_requests
from compilewatch.db.service.hosts import unserved
from compilewatch.db.service.tokens import token_of

MOST_BYTES = 64 * 1024
Body = TypeVar("Body", bound=BaseModel)


async def written(
    request: Request, scope: Scope, form: type[Body], write: Callable[[Body, str], dict[str, Any]]
) -> Response:
    """201 with what `write` makes of the body and of who sent it. Raises CompilewatchError."""
    secret = api_token_of(request.headers)
    token = None if secret is None else await to_thread.run_sync(lambda: token_of(reader(), secret))
    now = datetime.now(UTC)
    if token is None or token.has_ended(now):
        return error_response(
            401,
            "This needs an API token.",
            f"Make one with `compilewatch token create NAME --scope {scope}`.",
            CHALLENGE,
        )
    if not token.opens(scope, now):
        return error_response(
            403, "The API token does not open this.", f"Make one with --scope {scope}: it alone writes here."
        )
    body = _read(form, await _body(request))
    row = await to_thread.run_sync(write, body, f"token {token.name}")
    return Response(as_json(row), 201, media_type=JSON, headers={"Cache-Control": "no-store"})


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise ParameterError(f"The body is longer than {MOST_BYTES:,} bytes.", SEE_DOCUMENT)
    return body


def _read(form: type[Body], body: bytes) -> Body:
    try:
        return form.model_validate_json(body)
    except ValidationError as error:
        wrong = error.errors()[0]
    where = ".".join(map(str, wrong["loc"])) or "The body"
    known = ", ".join(form.model_fields)
    raise ParameterError(f"{where} {problem(wrong)}.", f"Send JSON with any of {known}.")


REQUEST_SCHEMA: Literal["compilewatch.api.request/1"] = "compilewatch.api.request/1"
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
    requests = run_requests.requests(database)
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


async def create_request(request: Request) -> Response:
    """Queue what the body, a `RequestSpec` as JSON, wants measured: 201 with its row.

    Names are data: the host that measures looks them up in its own configuration and refuses others.
    Raises CompilewatchError.
    """
    return await written(request, Scope.REQUESTS, RequestSpec, _queued)


def _queued(spec: RequestSpec, by: str) -> dict[str, Any]:
    queued, waiting = queue_request(spec, by=by)
    return RequestAnswer(request=queued, unserved=waiting).model_dump(mode="json")


class AnnotationSpec(BaseModel):
    """A note at a day or at a build, that of today where neither is named, of one machine or of all, of
    one workload or of all.
    """

    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=LONGEST_TEXT)
    url: str = Field(default="", max_length=2000, pattern=r"^(https?://[^\s\x00-\x1f]+)?$")
    day: date | None = None
    build: str | None = Field(default=None, description="as `compilewatch compare` names it")
    machine: str | None = Field(default=None, description="its name or id")
    workload: str | None = Field(default=None, description="its name")


async def create_annotation(request: Request) -> Response:
    """Write what the body says: 201 with the note. Raises CompilewatchError."""
    return await written(request, Scope.ANNOTATIONS, AnnotationSpec, _save)


def _save(spec: AnnotationSpec, by: str) -> dict[str, Any]:
    of_one = (spec.workload,) if spec.workload else ()
    named = with_ids(reader(), {"machine": spec.machine, "build": spec.build, "workload": of_one})
    note: Annotation = save(
        text=spec.text,
        url=spec.url,
        by=by,
        day=spec.day,
        build_id=named["build"],
        machine_id=named["machine"],
        workload=spec.workload,
    )
    return note.model_dump(mode="json")
