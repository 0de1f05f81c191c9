"""The gate in front of every route: pages, sockets, media, static files, API, reports and metrics alike.

It is the outermost part of the application and knows no route by name but the few that are open, so that a
route that is added later is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from urllib.parse import quote

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from compilewatch.dashboard.document.page import message
from compilewatch.dashboard.http.errors import error_response, for_anybody
from compilewatch.dashboard.http.rate_limit import Buckets, client_of, too_many
from compilewatch.dashboard.login.access import AccessError, Person
from compilewatch.dashboard.login.sessions import Sessions, comes_from, person_of_proxy, reader_of
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.records.access import PREFIX, SignIn, Token
from compilewatch.db.records.access import Scope as TokenScope

# Whatever says only that the server lives, and the way in itself.
OPEN = frozenset({"/healthz", "/_stcore/health", "/login", "/login/callback", "/signed-out"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_TOKEN_SCOPES = (
    ("/api/", TokenScope.API),
    ("/badge/", TokenScope.API),
    ("/chart/", TokenScope.API),
    ("/metrics", TokenScope.METRICS),
    ("/report/", TokenScope.REPORTS),
)
_WRITING_SCOPES = (
    ("/api/v1/annotations", TokenScope.ANNOTATIONS),
    ("/api/v1/jobs", TokenScope.JOBS),
    ("/api/", TokenScope.REQUESTS),
)
# Each is looked up in the database for somebody who may be anybody.
WRONG_TOKENS_AT_ONCE = 20
WRONG_TOKENS_PER_S = 1.0
_FORWARDED_FOR = "x-forwarded-for"
# Close codes of the socket protocol's range for applications: not signed in (any more).
SIGNED_OUT = 4401

TokenOf = Callable[[str], Token | None]


class People:
    """Who sent a request with these headers: by session, or by what the trusted proxy says."""

    def __init__(self, settings: SignIn, sessions: Sessions) -> None:
        self._settings = settings
        self._sessions = sessions
        # Of this name a browser takes only cookies that this very host set by HTTPS.
        self.cookie = "__Host-compilewatch" if settings.secure else "compilewatch"

    def identify(self, headers: Mapping[str, str]) -> Person | None:
        """Who sent `headers`, which passed `trusted` when they came; None for nobody.

        Raises AccessError for somebody whom the proxy knows and who has no role.
        """
        if self._settings.proxy is not None:
            lowered = {name.lower(): value for name, value in headers.items()}
            return person_of_proxy(self._settings, self._settings.proxy, lowered)
        return self._sessions.person(self.session_name(headers))

    def session_name(self, headers: Mapping[str, str]) -> str | None:
        """The name of the session that `headers` carry as a cookie, if any."""
        return cookie_parser(headers.get("cookie", "")).get(self.cookie)

    def sent_by(self, scope: Scope) -> Scope:
        """`scope` with the reader's address instead of the proxy's, where the proxy may be believed."""
        proxies = self._settings.believed
        forwarded = Headers(scope=scope).get(_FORWARDED_FOR)
        if forwarded is None or not comes_from(proxies, _address(scope)):
            return scope
        reader = reader_of(proxies, forwarded)
        return scope if reader is None else {**scope, "client": (reader, 0)}

    def trusted(self, scope: Scope) -> bool:
        """Whether what a request says of its sender may be believed: behind a proxy, only from the proxy."""
        proxy = self._settings.proxy
        return proxy is None or comes_from(proxy.addresses, _address(scope))

    def duplicate_header(self, scope: Scope) -> str | None:
        """A header by which a configured proxy speaks that came more than once: one is not the proxy's."""
        if not comes_from(self._settings.believed, _address(scope)):
            return None
        headers, proxy = Headers(scope=scope), self._settings.proxy
        names = (_FORWARDED_FOR, *((proxy.name_header, proxy.groups_header or "") if proxy else ()))
        return next((name for name in names if len(headers.getlist(name)) > 1), None)


class LoginMiddleware:
    """ASGI middleware that lets through who is signed in, who has a token, and what is open."""

    def __init__(self, app: ASGIApp, *, settings: SignIn, people: People, token_of: TokenOf) -> None:
        self._app = app
        self._settings = settings
        self._people = people
        self._token_of = token_of
        self._wrong_tokens = Buckets(WRONG_TOKENS_AT_ONCE, WRONG_TOKENS_PER_S)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        twice = self._people.duplicate_header(scope)
        if twice is not None:
            refusal: Response | None = error_response(
                400, f"The header {twice} came more than once.", "Have the proxy replace it."
            )
        else:
            refusal = None if self._is_open(scope["path"]) else await self._refusal(scope)
        if refusal is None:
            await self._app(self._people.sent_by(scope), receive, send)
        else:
            await refusal(scope, receive, send)

    def _is_open(self, path: str) -> bool:
        badges = self._settings.public_badges and path.startswith("/badge/")
        reports = self._settings.public_reports and path.startswith("/report/")
        return path in OPEN or badges or reports

    async def _refusal(self, scope: Scope) -> Response | None:
        """What a request is told instead of an answer; None where it may pass."""
        headers = Headers(scope=scope)
        secret = api_token_of(headers)
        if secret is not None:
            return await self._refusal_of_token(self._people.sent_by(scope), secret)
        if not self._people.trusted(scope):
            return error_response(
                403, "This address is not that of the trusted proxy.", "Come through the proxy."
            )
        try:
            person = self._people.identify(headers)
        except AccessError as error:
            return HTMLResponse(message("No role here", str(error)), 403, headers=_PRIVATE)
        if person is not None:
            return None
        if self._settings.issuer is not None and _is_page(scope, headers):
            query = scope["query_string"].decode("latin-1")
            path = quote(f"{scope['path']}?{query}" if query else scope["path"], safe="")
            return RedirectResponse(f"/login?next={path}", 303, headers=_PRIVATE)
        return error_response(401, "You are not signed in.", "Sign in, or send an API token.", CHALLENGE)

    async def _refusal_of_token(self, request: Scope, secret: str) -> Response | None:
        client = client_of(request)
        wait_s = self._wrong_tokens.wait_s(client)
        if wait_s:
            return too_many(wait_s, WRONG_TOKENS_PER_S)
        scope = _scope_of(request["method"], request["path"])
        now = datetime.now(UTC)
        try:
            token = await to_thread.run_sync(self._token_of, secret)
        except CompilewatchError as error:
            public_error = for_anybody(error)
            return error_response(503, public_error.message, public_error.next_step)
        if token is None or token.has_ended(now):
            self._wrong_tokens.take(client)
            return error_response(
                401, "The API token is not one, or has ended.", "Ask an operator for one.", CHALLENGE
            )
        if scope is None or not token.opens(scope, now):
            return error_response(
                403, "The API token does not open this.", "Ask an operator for one of the right scope."
            )
        return None

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A socket is asked again with every message in either direction: it may outlive its session."""
        headers = Headers(scope=scope)
        if self._people.duplicate_header(scope) or not self._people.trusted(scope) or self._nobody(headers):
            await send({"type": "websocket.close", "code": SIGNED_OUT})
            return
        closed = False

        async def receive_while_signed_in() -> Message:
            message = await receive()
            if message["type"] == "websocket.receive" and self._nobody(headers):
                await close()
                return {"type": "websocket.disconnect", "code": SIGNED_OUT}
            return message

        async def send_while_signed_in(message: Message) -> None:
            if message["type"] == "websocket.send" and self._nobody(headers):
                await close()
            elif not closed:
                await send(message)

        async def close() -> None:
            nonlocal closed
            if not closed:
                closed = True
                await send({"type": "websocket.close", "code": SIGNED_OUT})

        await self._app(self._people.sent_by(scope), receive_while_signed_in, send_while_signed_in)

    def _nobody(self, headers: Headers) -> bool:
        try:
            return self._people.identify(headers) is None
        except AccessError:
            return True


def api_token_of(headers: Mapping[str, str]) -> str | None:
    """The secret of the API token that `headers` carry; None where they carry none."""
    kind, _, secret = headers.get("authorization", "").partition(" ")
    secret = secret.strip()
    return secret if kind.lower() == "bearer" and secret.startswith(PREFIX) else None


def _scope_of(method: str, path: str) -> TokenScope | None:
    """What a token must open to pass; None where none passes."""
    if method not in _SAFE:
        return next((scope for prefix, scope in _WRITING_SCOPES if path.startswith(prefix)), None)
    return next((scope for prefix, scope in _TOKEN_SCOPES if path.startswith(prefix)), None)


_PRIVATE = {"Cache-Control": "no-store"}
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="compilewatch"', **_PRIVATE}


def _address(scope: Scope) -> str | None:
    return (scope.get("client") or (None,))[0]


def _is_page(scope: Scope, headers: Headers) -> bool:
    """Whether a person looks: a program is told 401 instead of being sent to a form."""
    return scope["method"] in {"GET", "HEAD"} and "text/html" in headers.get("accept", "")
