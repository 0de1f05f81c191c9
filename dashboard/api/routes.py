"""The routes beside the pages: reading requests, entity tags, and saying no in one shape."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from dashboard.api import openapi
from dashboard.api.badge import badge
from dashboard.api.called import with_ids
from dashboard.api.endpoints import ENDPOINTS, PREFIX, Endpoint
from dashboard.api.errors import defect, error_of_compilewatch, error_of_starlette
from dashboard.api.monitoring import health, metrics
from dashboard.api.parameters import read_all
from dashboard.api.rate_limit import RateLimit
from dashboard.api.representation import (
    JSON,
    Answer,
    as_json,
    entity_tag,
    media_type,
    response,
    tagged,
    unchanged,
)
from dashboard.api.response_cache import LIFETIME_S, ResponseCache
from dashboard.read.database import read_version, reader
from db.errors import CompilewatchError

Handler = Callable[[Request], Response]
_HANDLERS: dict[Any, Callable[[Request, Exception], Response]] = {
    CompilewatchError: error_of_compilewatch,
    HTTPException: error_of_starlette,
    Exception: defect,
}


def routes(*, lifetime_s: float = LIFETIME_S, base_path: str = "") -> list[BaseRoute]:
    """What the dashboard's server answers beside its pages. Each call has rate limits of its own.

    `base_path` is where the dashboard is served, as `dashboard.server.server.usable_prefix` writes it.

    While data is being written an answer may be `lifetime_s` old, and more where it took long to make
    (`dashboard.api.response_cache`).
    """
    cache = Middleware(ResponseCache, lifetime_s=lifetime_s)
    limited = Starlette(
        routes=[Route("/{workload:path}/{strategy}.svg", badge)],
        middleware=[Middleware(RateLimit), cache],
        exception_handlers=_HANDLERS,
    )
    return [
        Route("/healthz", health, middleware=[Middleware(ResponseCache, lifetime_s=lifetime_s, share=0)]),
        Route("/metrics", metrics, middleware=[cache]),
        Mount("/badge", limited),
        _api(cache, base_path),
    ]


def _api(cache: Middleware, base_path: str) -> Mount:
    app = Starlette(
        routes=[
            Route("/openapi.json", _openapi(base_path)),
            *(Route(endpoint.path, _handler(endpoint)) for endpoint in ENDPOINTS),
        ],
        middleware=[Middleware(RateLimit), cache],
        exception_handlers=_HANDLERS,
    )
    app.router.redirect_slashes = False
    return _Below(PREFIX, app)


class _Below(Mount):
    """Everything below a path: Starlette's own leaves out what has a line break in it."""

    def __init__(self, path: str, app: ASGIApp) -> None:
        super().__init__(path, app)
        self.path_regex = re.compile(self.path_regex.pattern, re.DOTALL)


def _handler(endpoint: Endpoint) -> Handler:
    def handle(request: Request) -> Response:
        query = _query(request)
        values = read_all(endpoint.parameters, query)
        for parameter in endpoint.path_parameters:
            values[parameter.name] = parameter.read((request.path_params[parameter.name],))
        media = media_type(request, values["format"])
        # Read before the data: a write in between gives a tag too old, never one too new.
        state = (read_version(), endpoint.freshness(reader()) if endpoint.freshness else None)
        tag = entity_tag(*state, request.url.path, request.url.query, media)
        headers = tagged(tag, is_cacheable=endpoint.is_cacheable)
        if unchanged(request, tag):
            return Response(status_code=304, headers=headers)
        answer = endpoint.answer(reader(), with_ids(reader(), values))
        return response(answer, media, headers, _next_url(query, answer))

    return handle


def _query(request: Request) -> dict[str, list[str]]:
    query: dict[str, list[str]] = defaultdict(list)
    for name, value in request.query_params.multi_items():
        query[name].append(value)
    return dict(query)


def _next_url(query: dict[str, list[str]], answer: Answer) -> str | None:
    """The page that follows as a query alone (RFC 3986, 5.2.2): it holds below whatever path a proxy adds."""
    if answer.next_cursor is None:
        return None
    return "?" + urlencode({**query, "cursor": [answer.next_cursor]}, doseq=True)


def _openapi(base_path: str) -> Handler:
    def handle(request: Request) -> Response:
        read_all((), _query(request))
        body = as_json(openapi.document(reader(), base_path))
        tag = entity_tag(body)
        if unchanged(request, tag):
            return Response(status_code=304, headers=tagged(tag))
        return Response(body, media_type=JSON, headers=tagged(tag))

    return handle
