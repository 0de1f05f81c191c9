"""Pure ASGI middleware: security headers on every response, and static files compressed once."""

from __future__ import annotations

import base64
import gzip
import hashlib
import logging
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

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
