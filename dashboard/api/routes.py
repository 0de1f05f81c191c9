"""The routes beside the pages: reading requests, entity tags, and saying no in one shape."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Hashable
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from compilewatch.dashboard.api import jobs, openapi, written
from compilewatch.dashboard.api.badge import badge, tally_badge
from compilewatch.dashboard.api.endpoints import ENDPOINTS, PREFIX, Endpoint
from compilewatch.dashboard.api.monitoring import health, metrics
from compilewatch.dashboard.api.queries import Query, query_of, with_ids
from compilewatch.dashboard.api.representation import (
    JSON,
    MadeAnswer,
    as_json,
    entity_tag,
    made_answer,
    media_type,
    tagged,
    unchanged,
)
from compilewatch.dashboard.api.written import create_annotation
from compilewatch.dashboard.http.errors import (
    SEE_DOCUMENT,
    ParameterError,
    defect,
    defect_for_anybody,
    error_for_anybody,
    error_of_compilewatch,
    error_of_starlette,
)
from compilewatch.dashboard.http.rate_limit import RateLimit, client_of
from compilewatch.dashboard.http.turns import ANSWERS
from compilewatch.dashboard.links.values import BadValueError, Text
from compilewatch.dashboard.read.database import database_url, read_version, reader
from compilewatch.db.errors import CompilewatchError

RECENT_ANSWERS = 4
"""Of each route so many stay until something is stored: who polls without an entity tag computes nothing."""

Handler = Callable[[Request], Awaitable[Response]]
_HANDLERS: dict[Any, Callable[[Request, Exception], Response]] = {
    CompilewatchError: error_of_compilewatch,
    HTTPException: error_of_starlette,
    Exception: defect,
}


def routes(*, base_path: str = "") -> list[BaseRoute]:
    """What the dashboard's server answers beside its pages. Rate limits and recent answers are of each call.

    `base_path` is where the dashboard is served, as `dashboard.server.server.usable_prefix` writes it.
    """
    limited = Starlette(
        routes=[
            Route("/tally.svg", ANSWERS(tally_badge)),
            Route("/{workload:path}/{strategy}.svg", ANSWERS(badge)),
        ],
        middleware=[Middleware(RateLimit)],
        exception_handlers={
            **_HANDLERS,
            CompilewatchError: error_for_anybody,
            Exception: defect_for_anybody,
        },
    )
    return [
        Route("/healthz", health),
        Route("/metrics", metrics),
        Mount("/badge", limited),
        _api(base_path),
    ]


def _api(base_path: str) -> Mount:
    app = Starlette(
        routes=[
            Route("/openapi.json", ANSWERS(_openapi(base_path))),
            *map(_route, ENDPOINTS),
        ],
        middleware=[Middleware(RateLimit)],
        exception_handlers=_HANDLERS,
    )
    app.router.redirect_slashes = False
    return _Below(PREFIX, app)


_CREATE = {"/requests": written.create_request, "/annotations": create_annotation, "/jobs": jobs.create}


def _route(endpoint: Endpoint) -> Route:
    read = _handler(endpoint)
    create = _CREATE.get(endpoint.path)
    if create is None:
        return Route(endpoint.path, read)

    async def read_or_create(request: Request) -> Response:
        is_new = request.method == "POST"
        return await (create(request) if is_new else read(request))

    return Route(endpoint.path, read_or_create, methods=["GET", "POST"])


class _Below(Mount):
    """Everything below a path: Starlette's own leaves out what has a line break in it."""

    def __init__(self, path: str, app: ASGIApp) -> None:
        super().__init__(path, app)
        self.path_regex = re.compile(self.path_regex.pattern, re.DOTALL)


def _handler(endpoint: Endpoint) -> Handler:
    @lru_cache(maxsize=RECENT_ANSWERS)
    def made(_at: Hashable, values: tuple[tuple[str, Any], ...], media: str) -> MadeAnswer:
        return made_answer(endpoint.answer(reader(), with_ids(reader(), dict(values))), media)

    make = made if endpoint.is_cacheable else made.__wrapped__

    async def handle(request: Request) -> Response:
        answer = await run_in_threadpool(asked, request)
        # What is unchanged is said at once; what is made takes its turn.
        return (
            answer if isinstance(answer, Response) else await ANSWERS.answer(answer, client_of(request.scope))
        )

    def asked(request: Request) -> Response | Callable[[], Response]:
        query = query_of(request)
        values = endpoint.query.read(query) | _ids(endpoint, request)
        media = media_type(request, values["format"])
        # Read before the data: a write in between gives a tag too old, never one too new.
        state = (read_version(), endpoint.freshness(reader()) if endpoint.freshness else None)
        tag = entity_tag(*state, request.url.path, request.url.query, media)
        headers = tagged(tag, is_cacheable=endpoint.is_cacheable)
        if unchanged(request, tag):
            return Response(status_code=304, headers=headers)

        def answer() -> Response:
            body, cursor = make((database_url(), state), tuple(values.items()), media)
            if cursor is None:
                return Response(body, media_type=media, headers=headers)
            # The next page as a query alone (RFC 3986, 5.2.2): it holds below whatever path a proxy adds.
            following = urlencode({**query, "cursor": [cursor]}, doseq=True)
            link = {"Link": f'<?{following}>; rel="next"'}
            return Response(body, media_type=media, headers={**headers, **link})

        return answer

    return handle


def _ids(endpoint: Endpoint, request: Request) -> dict[str, str]:
    """Those in the path. Raises ParameterError."""
    try:
        return {name: Text().read(request.path_params[name]) for name in endpoint.ids}
    except BadValueError as error:
        raise ParameterError(f"An id {error.must}.", SEE_DOCUMENT) from None


def _openapi(base_path: str) -> Callable[[Request], Response]:
    def handle(request: Request) -> Response:
        Query.read(query_of(request))
        body = as_json(openapi.document(reader(), base_path))
        tag = entity_tag(body)
        if unchanged(request, tag):
            return Response(status_code=304, headers=tagged(tag))
        return Response(body, media_type=JSON, headers=tagged(tag))

    return handle
