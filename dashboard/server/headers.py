"""Pure ASGI middleware: security headers on every response, static files compressed once, and what another
site may not do with a reader's browser."""

from __future__ import annotations

import base64
import gzip
import hashlib
import logging
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from compilewatch.dashboard.document.page import POLICY
from compilewatch.dashboard.http.errors import DEFECT, error_response

_LOG = logging.getLogger("compilewatch.dashboard")
_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_STATIC_PATH = "/static/"
_COMPRESSIBLE = {".js": "text/javascript", ".css": "text/css"}


def content_security_policy(*pages: str) -> str:
    """The policy under which Streamlit and Vega run with nothing from outside.

    Inline scripts of the HTML `pages` are allowed by their hash; there is no `unsafe-eval`, since Streamlit
    runs Vega through its interpreter. Styles are inline because emotion writes them at run time.
    """
    bodies = dict.fromkeys(body for page in pages for body in _INLINE_SCRIPT.findall(page))
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()}'" for body in bodies
    )
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' {hashes}".strip(),
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self'",
            "media-src 'self'",
            "worker-src 'self' blob:",
            "manifest-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        )
    )


class SecurityHeaders:
    """Adds the content security policy and its companions to every HTTP response.

    A defect in what it stands around is answered here, since what a server says of one by itself has no such
    headers; the reason goes to the log.
    """

    def __init__(self, app: ASGIApp, *, policy: str, framed_by: Sequence[str] = (), prefix: str = "") -> None:
        """`framed_by` are the sites that may frame what lies below `/embed/`, itself below `prefix`."""
        self._app = app
        self._embeds = ("/embed/", f"{prefix}/embed/")
        sites = " ".join(framed_by) or "'none'"
        self._embedded = {"Content-Security-Policy": f"{POLICY}; frame-ancestors {sites}"}
        if not framed_by:
            self._embedded["X-Frame-Options"] = "DENY"
        self._headers = {
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        started = ended = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started, ended
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                headers.update(self._headers)
                if scope["path"].startswith(self._embeds):
                    # It names no sites: browsers that know frame-ancestors go by that.
                    del headers["X-Frame-Options"]
                    headers.update(self._embedded)
            elif not message.get("more_body", False):
                ended = True
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as error:
            _LOG.error("%s failed", scope["path"], exc_info=error)
            if not started:
                await error_response(500, *DEFECT)(scope, receive, send_with_headers)
            elif not ended:
                raise  # The server closes the connection: half an answer must not pass for a whole one.


class CompressedStatic:
    """Serves Streamlit's JavaScript and CSS gzip-compressed, each file compressed once and kept in memory.

    Streamlit leaves them uncompressed: about 5 MB for a browser that comes for the first time, 1.5 MB with
    this. Their names carry a content hash, so they may be cached for ever.
    """

    def __init__(self, app: ASGIApp, *, folder: Path) -> None:
        self._app = app
        self._folder = folder.resolve()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        file = self._file(scope)
        if file is None:
            await self._app(scope, receive, send)
            return
        headers = {
            "Content-Encoding": "gzip",
            "Vary": "Accept-Encoding",
            "Cache-Control": "public, max-age=31536000, immutable",
        }
        body = b"" if scope["method"] == "HEAD" else _gzipped(file)
        response = Response(body, media_type=_COMPRESSIBLE[file.suffix], headers=headers)
        await response(scope, receive, send)

    def _file(self, scope: Scope) -> Path | None:
        if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"}:
            return None
        path = str(scope["path"])
        if not path.startswith(_STATIC_PATH) or "gzip" not in Headers(scope=scope).get("accept-encoding", ""):
            return None
        file = (self._folder / path.removeprefix(_STATIC_PATH)).resolve()
        inside = file.is_relative_to(self._folder) and file.suffix in _COMPRESSIBLE
        return file if inside and file.is_file() else None


@lru_cache(maxsize=512)
def _gzipped(file: Path) -> bytes:
    return gzip.compress(file.read_bytes(), compresslevel=6, mtime=0)


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
