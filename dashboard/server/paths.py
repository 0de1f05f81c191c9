"""Paths: the dashboard below one of somebody else's site, such as https://host/compilewatch/, and where those
lead that are no page, since Streamlit serves a page that loads nothing under each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlencode

from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import Page
from compilewatch.db.errors import ConfigError

_PATH_PART = re.compile(r"[A-Za-z0-9._~-]+")


class BasePath:
    """Pure ASGI middleware: everything within is served as if at the root, and redirects lead back below.

    A proxy may hand requests on with the prefix or have taken it off: both are served. Pages find their base
    from the address they were loaded from (`dashboard.server.index_page`).
    """

    def __init__(self, app: ASGIApp, *, prefix: str) -> None:
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        path = str(scope["path"])
        if scope["type"] == "http" and path == self._prefix:
            # Without the slash a browser would look for everything one level too high.
            query = scope["query_string"].decode("latin-1")
            away = RedirectResponse(f"{self._prefix}/{f'?{query}' if query else ''}", status_code=308)
            await away(scope, receive, send)
            return
        if path.startswith(f"{self._prefix}/"):
            raw = bytes(scope.get("raw_path") or path.encode())
            scope = {
                **scope,
                "path": path.removeprefix(self._prefix),
                "raw_path": raw.removeprefix(self._prefix.encode()),
            }

        async def send_below(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [self._below(*each) for each in message["headers"]]}
            await send(message)

        await self._app(scope, receive, send_below)

    def _below(self, name: bytes, value: bytes) -> tuple[bytes, bytes]:
        """A header whose address begins at the root of the host, moved below the prefix."""
        prefix = self._prefix.encode()
        if name.lower() == b"location" and value.startswith(b"/") and not value.startswith(b"//"):
            return name, prefix + value
        return name, value


def usable_prefix(text: str) -> str:
    """`text` with one slash in front and none behind; empty for the root. Raises ConfigError."""
    parts = [part for part in text.strip().split("/") if part]
    for part in parts:
        if part in {".", ".."} or not _PATH_PART.fullmatch(part):
            raise ConfigError(
                f"{part!r} cannot be part of a path below which the dashboard is served.",
                "Use letters, digits, - and _, for example --base-path /compilewatch.",
            )
    return "".join(f"/{part}" for part in parts)


# What Streamlit answers below itself, beside the files of its folder.
_STREAMLIT = ("_stcore", "app", "auth", "bidi-components", "component", "media", "oauth2callback")


def unknown_pages(files: Iterable[str]) -> BaseRoute:
    """The route for them; it belongs behind all others. `files` are the names in Streamlit's folder."""
    known_names = "|".join(map(re.escape, (*_STREAMLIT, *files)))

    class NoPage(StringConvertor):
        """A path of one part or of several."""

        regex = rf"(?!(?:{known_names})(?:/|$))(?!.*_stcore/)[^/](?:.*[^/])?"

    register_url_convertor("no_page", NoPage())
    return Route("/{path:no_page}", _lead)


def _lead(request: Request) -> Response:
    """To the page or the report that is meant, else to the Overview, which says that there is none such."""
    path, query = request.path_params["path"], request.url.query
    first, _, rest = path.partition("/")
    page = links.page_named(first)
    if page is not None and not rest:
        return _to(request, page, query)
    if page is Page.REPORTS and "/" not in rest:
        return _to(request, page, urlencode({"report": rest}), query)
    return _to(request, Page.OVERVIEW, urlencode({links.NOT_FOUND: path}), query)


def _to(request: Request, page: Page, *queries: str) -> Response:
    query = "&".join(filter(None, queries))
    address = f"{request.scope.get('root_path', '')}/{page.value}"
    return RedirectResponse(f"{address}?{query}" if query else address, status_code=307)
