"""What a program writes: who may, what the body holds, and the answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from anyio import to_thread
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from compilewatch.dashboard.api.representation import JSON, as_json
from compilewatch.dashboard.http.errors import SEE_DOCUMENT, ParameterError, error_response
from compilewatch.dashboard.login.middleware import CHALLENGE, api_token_of
from compilewatch.dashboard.read.database import reader
from compilewatch.db.records.access import Scope
from compilewatch.db.records.fields import problem
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
