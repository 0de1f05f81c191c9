"""What another site may not do with a reader's browser: ASGI middleware.

A page elsewhere can make a browser send requests here with its cookies (cross-site request forgery), open a
socket here, or give this machine a name of its own (DNS rebinding). Reads are left to the browser's own
rules; sockets and writes must come from our own pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from compilewatch.dashboard.http.errors import error_response

# As many as no body has; int() raises for some thousands.
_DIGITS = re.compile("[0-9]{1,18}")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OURS = frozenset({"same-origin", "none"})
# Close code of the socket protocol for a peer that breaks the rules.
_POLICY_VIOLATION = 1008
_ROOM_AROUND_AN_UPLOAD = 1 << 20


class SameSite:
    """Refuses foreign names, foreign sockets, foreign writes, and bodies that are too long.

    `hosts` are the names under which this server is reached, any where None; `largest_body` is in bytes.
    """

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str] | None, largest_body: int) -> None:
        self._app = app
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._largest_body = largest_body + _ROOM_AROUND_AN_UPLOAD

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            if not self._is_our_socket(Headers(scope=scope)):
                await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
                return
        elif scope["type"] == "http":
            refusal = self._refusal(scope["method"], Headers(scope=scope))
            if refusal is not None:
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_our_socket(self, headers: Headers) -> bool:
        """Every browser says where a socket's page comes from; what does not is no browser."""
        return self._is_our_name(headers) and _is_our_origin(headers)

    def _refusal(self, method: str, headers: Headers) -> Response | None:
        if not self._is_our_name(headers):
            return error_response(
                421, "This server does not answer under that name.", "Use the address that it was given."
            )
        if method in _SAFE:
            return None
        if not _is_our_write(headers):
            return error_response(403, "This write was begun by another site.", "Write from the pages here.")
        if "transfer-encoding" in headers:
            return error_response(411, "The body has no length.", "Send Content-Length.")
        length = headers.get("content-length", "0")
        if not _DIGITS.fullmatch(length) or int(length) > self._largest_body:
            return error_response(413, "The body is too long.", f"Send at most {self._largest_body} bytes.")
        return None

    def _is_our_name(self, headers: Headers) -> bool:
        if self._hosts is None:
            return True
        hosts = headers.getlist("host")
        return len(hosts) == 1 and _hostname(f"//{hosts[0]}") in self._hosts


def _is_our_origin(headers: Headers) -> bool:
    """One origin and one host that are the same; a text that is no address is neither."""
    origins, hosts = headers.getlist("origin"), headers.getlist("host")
    if len(origins) != 1 or len(hosts) != 1:
        return False
    try:
        netloc = urlsplit(origins[0]).netloc.lower()
    except ValueError:
        return False
    return bool(netloc) and netloc == hosts[0].lower()


def _is_our_write(headers: Headers) -> bool:
    """From a page of ours; or from a program, which sends no cookie that it could be robbed of.

    A form of ours has the origin "null", since our pages tell nobody where a request comes from; there
    Sec-Fetch-Site decides, which no page can set.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site in _OURS and (origin in {None, "null"} or _is_our_origin(headers))
    if origin is not None:
        return _is_our_origin(headers)
    return "cookie" not in headers


def _hostname(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
