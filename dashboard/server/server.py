"""The one ASGI process: Streamlit, a health route, security headers, compressed static files, warm caches."""

from __future__ import annotations

import errno
import ipaddress
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import streamlit as st
from anyio import to_thread
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from compilewatch.dashboard.api import routes as api
from compilewatch.dashboard.api.queries import query_of
from compilewatch.dashboard.http.turns import RENDER_LIMIT
from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import PAGES, Page
from compilewatch.dashboard.login import routes
from compilewatch.dashboard.pages.registry import CONTENTS
from compilewatch.dashboard.read.data import read_choices
from compilewatch.dashboard.read.database import DATABASE_VARIABLE, close_databases, sentence_of
from compilewatch.dashboard.reports.routes import reports
from compilewatch.dashboard.server.charts import asked_for, charts, where
from compilewatch.dashboard.server.headers import (
    CompressedStatic,
    SameSite,
    SecurityHeaders,
    content_security_policy,
)
from compilewatch.dashboard.server.index_page import index_pages, opened_at, with_headline, with_picture
from compilewatch.dashboard.server.paths import BasePath, unknown_pages, usable_prefix
from compilewatch.dashboard.text import theme
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.dashboard.write.uploading import LARGEST_MB
from compilewatch.dashboard.write.writing import stored_address
from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.records.access import SignIn

_LOG = logging.getLogger("compilewatch.dashboard")


def warm() -> None:
    """Import and read what the first page needs. Raises DatabaseError when the database cannot be read."""
    from compilewatch.dashboard.server import app  # noqa: F401

    read_choices()


HERE = Path(__file__).parent
ICON = HERE.parent / "favicon.svg"
STATIC = Path(st.__file__).parent / "static"
EMBED_VARIABLE = "COMPILEWATCH_EMBED_ORIGINS"
PUBLIC_VARIABLE = "COMPILEWATCH_PUBLIC_URL"
MEGABYTE = 1024 * 1024
# Screens on walls open `/?view=wall`, which was a page of its own.
_WALL = "wall"
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def serve(
    database_url: str, host: str, port: int, *, allow_public: bool = False, base_path: str = ""
) -> None:
    """Serve the dashboard of `database_url` on `host`:`port` until interrupted. Never migrates.

    With `base_path` it is served below that path as well, which a proxy hands on.

    Raises DatabaseError when the database is absent or its schema is not this program's, CompilewatchError
    when people cannot sign in as configured, the port is taken, or `host` is reachable from other machines
    with neither login nor `allow_public`.
    """
    sign_in = routes.settings_here()
    if sign_in is None:
        _require_private(host, allow_public=allow_public)
    open_database(database_url, read_only=True).close()
    _require_free(host, port)
    os.environ[DATABASE_VARIABLE] = database_url
    # uvicorn would believe whatever connects from this machine; the gate believes the configured proxies.
    os.environ["FORWARDED_ALLOW_IPS"] = ""
    prefix = usable_prefix(base_path)
    app = build_app(
        f"{_address(host, port)}{prefix}",
        sign_in=sign_in,
        own_names=None if allow_public else (*_THIS_MACHINE, host),
        base_path=prefix,
    )
    app.run(config=options(host, port))


def build_app(
    address: str | None = None,
    *,
    sign_in: SignIn | None = None,
    own_names: Sequence[str] | None = None,
    base_path: str = "",
) -> st.App:
    """The ASGI application over the database named in the environment; `address` is announced once up.

    With `sign_in` every route but the way in is closed to whoever is not signed in. `own_names` are the
    hosts under which it answers besides that of `sign_in`; None for any. Raises CompilewatchError.
    """
    login = routes.login(sign_in)
    hosts = None if own_names is None else [*own_names, *([login.host] if login.host else [])]

    @asynccontextmanager
    async def lifespan(_: st.App) -> AsyncIterator[dict[str, Any]]:
        await to_thread.run_sync(warm)
        if address:
            sys.stdout.write(f"compilewatch dashboard: {address}\n")
            sys.stdout.flush()
        yield {}
        await to_thread.run_sync(close_databases)

    def address_of(request: Request) -> str:
        """Where people reach the dashboard: as configured, since a proxy in front may end their TLS."""
        configured = sign_in.base_url if sign_in else os.environ.get(PUBLIC_VARIABLE, "").rstrip("/")
        return configured or f"{request.url.scheme}://{request.url.netloc}{base_path}"

    pages = index_pages((STATIC / "index.html").read_text(encoding="utf-8"))
    return st.App(
        HERE / "app.py",
        routes=[
            *login.routes,
            *api.routes(base_path=base_path),
            reports(),
            Route("/favicon.png", _favicon),
            *charts(),
            *(Route(f"/{page.value}", _html(page, pages, address_of)) for page in pages),
            unknown_pages(file.name for file in STATIC.iterdir()),
        ],
        middleware=[
            Middleware(
                SecurityHeaders,
                policy=content_security_policy(*pages.values()),
                framed_by=os.environ.get(EMBED_VARIABLE, "").split(),
                prefix=base_path,
            ),
            *([Middleware(BasePath, prefix=base_path)] if base_path else []),
            Middleware(SameSite, hosts=hosts, largest_body=LARGEST_MB * MEGABYTE),
            *login.middleware,
            Middleware(CompressedStatic, folder=STATIC / "static"),
        ],
        lifespan=lifespan,
        on_script_error=_report_script_error,
    )


def options(host: str, port: int) -> dict[str, Any]:
    """Streamlit's configuration: nothing leaves the machine, errors are sentences, reruns are cheap."""
    return {
        "server.address": host,
        "server.port": port,
        "server.headless": True,
        "server.fileWatcherType": "none",
        "server.maxUploadSize": LARGEST_MB,
        "server.enableXsrfProtection": True,
        "server.enableStaticServing": False,
        "server.enableAgentApi": False,
        "server.enableWebsocketCompression": False,
        # A closed tab's session keeps an event loop with three descriptors until then; a reload takes 1 s.
        "server.disconnectedSessionTTL": 10,
        "browser.gatherUsageStats": False,
        "client.showErrorDetails": "none",
        "client.showErrorLinks": False,
        # Streamlit's own CSV holds formulas as they come; the pages' export has the same tables without.
        "client.disableDataExport": True,
        # An empty band above every page held a menu of what browsers do.
        "client.toolbarMode": "minimal",
        "client.allowedOrigins": [],
        "logger.hideWelcomeMessage": True,
        # A full collection after every rerun costs 100 to 200 ms with pandas and Altair loaded.
        "runner.postScriptGC": False,
        "runner.magicEnabled": False,
        **theme.options(),
    }


def _report_script_error(error: Exception) -> bool:
    if not isinstance(error, CompilewatchError):
        _LOG.error("a page failed", exc_info=error)
    known = sentence_of(error)
    text = "This page failed. The reason is in the log of the server; please report it."
    if known is not None:
        text = escaped(str(known))
    st.error(text, icon=":material/error:")
    return True


def _html(
    page: Page, pages: Mapping[Page, str], address_of: Callable[[Request], str]
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        stored = request.query_params.getlist(links.STORED_VIEW)
        if page is Page.OVERVIEW and stored == [_WALL]:
            query = request.url.remove_query_params(links.STORED_VIEW).query
            return RedirectResponse(f"./?{query}" if query else "./", status_code=307)
        found = None
        # A browser says what it fetches for, and gets the headline with the page itself: only previews wait.
        if "sec-fetch-mode" not in request.headers and not stored and page in CONTENTS:
            async with RENDER_LIMIT.take_in_loop():
                found = await run_in_threadpool(_found, page, request)
        return await run_in_threadpool(index, request, stored, found)

    def index(request: Request, stored: Sequence[str], found: tuple[str, str] | None) -> Response:
        text = (_stored_view(stored[0], pages) if stored else None) or pages[page]
        if (key := _picture(page, request)) and not stored:
            picture = links.chart_address(page, key, request.url.query, ".png")
            text = with_picture(text, f"{address_of(request)}/{picture}")
        if found:
            text = with_headline(text, page, *found)
        return HTMLResponse(text, headers={"Cache-Control": "no-cache"})

    return answer


def _picture(page: Page, request: Request) -> str:
    """The key of the chart in the preview of a link; empty for a page without one."""
    query, entry = request.query_params, PAGES[page]
    of_one = query.get("focus") or len(query.getlist("workload")) == 1
    return entry.picture_of_one if of_one and entry.picture_of_one else entry.picture


def _found(page: Page, request: Request) -> tuple[str, str] | None:
    """What the page says first, and of what; None where it cannot be drawn, which the page itself tells."""
    try:
        content = asked_for(page, query_of(request))
    except Exception as error:
        if not isinstance(error, CompilewatchError) and sentence_of(error) is None:
            raise
        return None
    return (content.headline, where(content)) if content and content.headline else None


def _stored_view(view_id: str, pages: Mapping[Page, str]) -> str | None:
    """The page of the view kept under `view_id`; None where the page that was asked for says why not."""
    try:
        address = stored_address(view_id)
    except CompilewatchError:
        return None
    if address is None:
        return None
    page, query = address
    return opened_at(pages[page], f"./{page.value}?{query}")


def _favicon(_: Request) -> Response:
    return FileResponse(ICON, media_type="image/svg+xml")


def _require_private(host: str, *, allow_public: bool) -> None:
    try:
        private = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        private = False
    if not private and not allow_public:
        raise CompilewatchError(
            f"{host} can be reached from other machines, and the dashboard has no login.",
            "Use --host 127.0.0.1, configure [auth], or add --allow-public if the network may do everything.",
        )


def _require_free(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise CompilewatchError(
                    f"Port {port} on {host} is taken by another program.",
                    f"Choose another with --port, for example --port {port + 1}.",
                ) from error
            raise CompilewatchError(
                f"Cannot listen on {host}:{port}: {error.strerror or error}.",
                "Check --host and --port.",
            ) from error


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
