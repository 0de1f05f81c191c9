"""The one ASGI process: Streamlit, a health route, security headers, compressed static files, warm caches."""

from __future__ import annotations

import errno
import gc
import ipaddress
import logging
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import streamlit as st
import uvicorn.config
from anyio import to_thread
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime.state.common import is_element_id
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from dashboard.api import routes as api
from dashboard.api.parameters import query_of
from dashboard.links import links
from dashboard.links.links import PAGES, Page
from dashboard.links.stored_views import stored_address
from dashboard.login import install
from dashboard.read.data import read_choices
from dashboard.read.database import DATABASE_VARIABLE, close_databases
from dashboard.read.snapshots import Snapshot
from dashboard.render import theme
from dashboard.render.foreign_text import escaped
from dashboard.reports.routes import reports
from dashboard.server.charts import charts
from dashboard.server.headers import CompressedStatic, SecurityHeaders, content_security_policy
from dashboard.server.index_page import index_pages, opened_at, with_picture
from dashboard.server.same_site import SameSite
from dashboard.server.wall import WALL, wall_page
from dashboard.write.uploading import LARGEST_MB
from db.engine.session import open_database
from db.errors import CompilewatchError, ConfigError
from db.records.access import SignIn

# What is imported and read before the first reader comes.

_LOG = logging.getLogger("compilewatch.dashboard")


def warm() -> None:
    """Import and read what the first page needs. Raises DatabaseError when the database cannot be read."""
    from dashboard.server import app  # noqa: F401

    read_choices(Snapshot.now())


# Paths that are no page: where they lead, since Streamlit serves a page that loads nothing under each.

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


# The dashboard below a path of somebody else's site, such as https://host/compilewatch/.

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


# What opens a socket is answered, and what comes over it is a message of Streamlit's or ends it.
#
# Streamlit answers a text with a traceback in the log, and a page fails on the state of what is no widget.
# Messages of its developers' tools are passed over: they list the files of this checkout, and empty the
# cache of everybody.

# Close code of the socket protocol for a peer that speaks otherwise.
PROTOCOL_ERROR = 1002


_NEEDED = frozenset({"rerun_script", "stop_script", "app_heartbeat", "file_urls_request"})
_NEEDED_OPERATIONS = frozenset({"deferred_file", "dataframe_chunk"})


class SocketFrames:
    """Closes a socket at its first frame that is no message; hands on those that pages need."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        closed = False

        async def receive_messages() -> Message:
            nonlocal closed
            while (message := await receive())["type"] == "websocket.receive":
                from_page = _message(message.get("bytes"))
                if from_page is None:
                    _LOG.warning("a socket was closed: its frame is no message of a page")
                    closed = True
                    await send({"type": "websocket.close", "code": PROTOCOL_ERROR})
                    return {"type": "websocket.disconnect", "code": PROTOCOL_ERROR}
                if _is_needed(from_page):
                    break
            return message

        async def send_while_open(message: Message) -> None:
            if not closed:
                await send(message)

        await self._app(scope, receive_messages, send_while_open)


def _message(data: bytes | None) -> BackMsg | None:
    """What Streamlit's pages send, with states of widgets alone; None for anything else."""
    try:
        message = None if data is None else BackMsg.FromString(data)
    except Exception:  # noqa: BLE001 - of protobuf, which is Streamlit's and not ours
        return None
    if message is None:
        return None
    widgets = message.rerun_script.widget_states.widgets
    return message if all(is_element_id(state.id) for state in widgets) else None


def _is_needed(message: BackMsg) -> bool:
    """Whether the pages of a reader send it."""
    kind = message.WhichOneof("type")
    if kind == "backend_operation_request":
        return message.backend_operation_request.WhichOneof("payload") in _NEEDED_OPERATIONS
    return kind in _NEEDED


class AnsweredHandshake(WebSocketsSansIOProtocol):
    """A socket of uvicorn's that refuses what asks for one and is no request for one, such as a PUT.

    uvicorn gives it no answer, keeps it open, and fails on it when the server ends.
    """

    def data_received(self, data: bytes) -> None:
        """Hand on what came; hang up, with an answer, where it opens no socket."""
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self.handshake_initiated = self.handshake_complete = self.close_sent = True
            self.transport.write(b"".join(self.conn.data_to_send()) or _BAD_REQUEST)
            self.transport.close()


def answer_handshakes() -> None:
    """From now on the servers of this process answer as `AnsweredHandshake` does."""
    uvicorn.config.WS_PROTOCOLS["websockets-sansio"] = f"{__name__}:{AnsweredHandshake.__name__}"


_BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


HERE = Path(__file__).parent
ICON = HERE.parent / "favicon.svg"
STATIC = Path(st.__file__).parent / "static"
EMBED_VARIABLE = "COMPILEWATCH_EMBED_ORIGINS"
PUBLIC_VARIABLE = "COMPILEWATCH_PUBLIC_URL"
MEGABYTE = 1024 * 1024
_SLICE_S = 0.001
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class ServeError(CompilewatchError):
    """The dashboard cannot be served as asked."""


def serve(
    database_url: str, host: str, port: int, *, allow_public: bool = False, base_path: str = ""
) -> None:
    """Serve the dashboard of `database_url` on `host`:`port` until interrupted. Never migrates.

    With `base_path` it is served below that path as well, which a proxy hands on.

    Raises DatabaseError when the database is absent or its schema is not this program's, SignInError when
    people cannot sign in as configured, ServeError when the port is taken or `host` is reachable from other
    machines with neither login nor `allow_public`.
    """
    sign_in = install.settings_here()
    if sign_in is None:
        _require_private(host, allow_public=allow_public)
    open_database(database_url, read_only=True).close()
    _require_free(host, port)
    os.environ[DATABASE_VARIABLE] = database_url
    # uvicorn would believe whatever connects from this machine; the gate believes the configured proxies.
    os.environ["FORWARDED_ALLOW_IPS"] = ""
    answer_handshakes()
    # How long a page that computes may keep the event loop waiting, every time that has something to do.
    sys.setswitchinterval(_SLICE_S)
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
    hosts under which it answers besides that of `sign_in`; None for any. Raises SignInError.
    """
    login = install.login(sign_in)
    hosts = None if own_names is None else [*own_names, *([login.host] if login.host else [])]

    @asynccontextmanager
    async def lifespan(_: st.App) -> AsyncIterator[dict[str, Any]]:
        await to_thread.run_sync(warm)
        # What was imported and cached so far lives as long as the process: keep the collector away from it.
        gc.collect()
        gc.freeze()
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
            Middleware(SocketFrames),
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
        "browser.gatherUsageStats": False,
        "client.showErrorDetails": "none",
        "client.showErrorLinks": False,
        # Streamlit's own CSV holds formulas as they come; the pages' export has the same tables without.
        "client.disableDataExport": True,
        "client.toolbarMode": "viewer",
        "client.allowedOrigins": [],
        "logger.hideWelcomeMessage": True,
        # A full collection after every rerun costs 100 to 200 ms with pandas and Altair loaded.
        "runner.postScriptGC": False,
        "runner.magicEnabled": False,
        **theme.options(),
    }


def _report_script_error(error: Exception) -> bool:
    text = "This page failed. The reason is in the log of the server; please report it."
    if isinstance(error, CompilewatchError):
        text = escaped(str(error))
    else:
        _LOG.error("a page failed", exc_info=error)
    st.error(text, icon=":material/error:")
    return True


def _html(
    page: Page, pages: Mapping[Page, str], address_of: Callable[[Request], str]
) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        stored = request.query_params.getlist(links.STORED_VIEW)
        if page is Page.OVERVIEW and stored == [WALL]:
            status, text = wall_page(query_of(request))
            return HTMLResponse(text, status, headers={"Cache-Control": "no-store"})
        text = (_stored_view(stored[0], pages) if stored else None) or pages[page]
        if PAGES[page].picture and not stored:
            picture = links.chart_address(page, PAGES[page].picture, request.url.query, ".png")
            text = with_picture(text, f"{address_of(request)}/{picture}")
        return HTMLResponse(text, headers={"Cache-Control": "no-cache"})

    return answer


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
        raise ServeError(
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
                raise ServeError(
                    f"Port {port} on {host} is taken by another program.",
                    f"Choose another with --port, for example --port {port + 1}.",
                ) from error
            raise ServeError(
                f"Cannot listen on {host}:{port}: {error.strerror or error}.",
                "Check --host and --port.",
            ) from error


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
