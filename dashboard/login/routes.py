"""The way in and out: `/login`, where the provider sends people back to, `/logout`; and what
puts the login of the configuration in front of the application."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from anyio import to_thread
from pydantic import ValidationError
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from compilewatch.dashboard.document.page import FORM_POLICY, document, message
from compilewatch.dashboard.http.rate_limit import RateLimit
from compilewatch.dashboard.login import access
from compilewatch.dashboard.login.access import AccessError
from compilewatch.dashboard.login.middleware import LoginMiddleware, People
from compilewatch.dashboard.login.oidc import CALLBACK, Provider
from compilewatch.dashboard.login.sessions import Sessions, person_of_claims
from compilewatch.dashboard.read.database import reader
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.records.access import SignIn
from compilewatch.db.service.tokens import token_of

_LOG = logging.getLogger("compilewatch.dashboard")
_PRIVATE = {"Cache-Control": "no-store"}
_LONGEST_PATH = 8_000
# Everybody may begin, and each attempt is remembered for a while: one address cannot crowd out the others.
LIMIT = Middleware(RateLimit, burst=60, per_second=5.0)


class LoginRoutes:
    """The routes of a login by OpenID Connect, over the sessions that they begin and end."""

    def __init__(self, settings: SignIn, provider: Provider, sessions: Sessions, people: People) -> None:
        self._settings = settings
        self._provider = provider
        self._sessions = sessions
        self._people = people
        self._attempt = f"{people.cookie}-login"

    def routes(self) -> list[BaseRoute]:
        """In, back from the provider, and out."""
        return [
            Route("/login", self._begin, middleware=[LIMIT]),
            Route(CALLBACK, self._finish),
            Route("/logout", _sign_out_form, methods=["GET"]),
            Route("/logout", self._end, methods=["POST"]),
            Route("/signed-out", _signed_out),
        ]

    async def _begin(self, request: Request) -> Response:
        try:
            address, secret = await to_thread.run_sync(
                self._provider.begin, safe_path(request.query_params.get("next", "/"))
            )
        except AccessError as error:
            return _message_page(503, "Cannot sign in", error)
        answer = RedirectResponse(address, 303, headers=_PRIVATE)
        self._set_cookie(answer, self._attempt, secret, None)
        return answer

    async def _finish(self, request: Request) -> Response:
        query: Mapping[str, str] = dict(request.query_params)
        try:
            claims, back_to = await to_thread.run_sync(
                self._provider.finish, query, request.cookies.get(self._attempt)
            )
            person = person_of_claims(self._settings, claims)
        except AccessError as error:
            _LOG.warning("a login was refused: %s", error.message)
            return _message_page(403, "Not signed in", error)
        # Whoever had a session in this browser before has it no more, and nobody can plant one.
        self._sessions.end(request.cookies.get(self._people.cookie))
        name = self._sessions.begin(person)
        _LOG.info("%s signed in as %s", person.name, person.role.value)
        answer = RedirectResponse(back_to, 303, headers=_PRIVATE)
        self._set_cookie(answer, self._people.cookie, name, round(self._sessions.lasts_s))
        self._delete_cookie(answer, self._attempt)
        return answer

    async def _end(self, request: Request) -> Response:
        self._sessions.end(request.cookies.get(self._people.cookie))
        answer = RedirectResponse("/signed-out", 303, headers=_PRIVATE)
        self._delete_cookie(answer, self._people.cookie)
        return answer

    def _set_cookie(self, answer: Response, name: str, value: str, lasts_s: int | None) -> None:
        """Not for scripts, and of what another site begins only with its links."""
        answer.set_cookie(
            name, value, max_age=lasts_s, secure=self._settings.secure, httponly=True, samesite="lax"
        )

    def _delete_cookie(self, answer: Response, name: str) -> None:
        answer.delete_cookie(name, secure=self._settings.secure, httponly=True, samesite="lax")


def safe_path(path: str) -> str:
    """`path` where it is a path of this dashboard, else the Overview: nobody is led to another site."""
    try:
        parts = urlsplit(path)
    except ValueError:
        return "/"
    plain = path.isprintable() and "\\" not in path and len(path) <= _LONGEST_PATH
    inside = path.startswith("/") and not path.startswith("//") and not (parts.scheme or parts.netloc)
    loops = parts.path in {"/login", CALLBACK, "/logout", "/signed-out"}
    return path if plain and inside and not loops else "/"


def _sign_out_form(_: Request) -> Response:
    """A link leads here; only the form ends the session, so that no other site can."""
    form = '<form method="post" action="logout"><button type="submit">Sign out</button></form>'
    body = f"<main><h1>Sign out</h1><p>Pages that are open stop working.</p>{form}</main>"
    page = document("Sign out", "Pages that are open stop working.", body, policy=FORM_POLICY)
    return HTMLResponse(page, headers=_PRIVATE)


def _signed_out(_: Request) -> Response:
    body = '<main><h1>Signed out</h1><p><a href=".">Sign in again</a></p></main>'
    return HTMLResponse(document("Signed out", "You are signed out.", body), headers=_PRIVATE)


def _message_page(status: int, title: str, error: AccessError) -> Response:
    return HTMLResponse(message(title, str(error)), status, headers=_PRIVATE)


SETTINGS_VARIABLE = "COMPILEWATCH_SIGN_IN"


@dataclass(frozen=True)
class Login:
    """What a login adds to the application: routes, and the gate before all routes."""

    routes: list[BaseRoute]
    middleware: list[Middleware]
    host: str | None


NO_LOGIN = Login([], [], None)


def settings_here() -> SignIn | None:
    """The `[auth]` this process was given, None where there is none. Raises CompilewatchError."""
    content = os.environ.get(SETTINGS_VARIABLE)
    if not content:
        return None
    try:
        settings = SignIn.model_validate_json(content)
    except ValidationError:
        # The complaint would repeat what it complains about, a secret among it.
        raise CompilewatchError(
            f"{SETTINGS_VARIABLE} does not hold an [auth].",
            "Start the dashboard with `compilewatch dashboard`.",
        ) from None
    if settings.lacks_secret:
        raise CompilewatchError(
            f"Signing in at {settings.issuer} needs a client secret.",
            "Set COMPILEWATCH_AUTH__CLIENT_SECRET, or client_secret in [auth].",
        )
    return settings


def login(settings: SignIn | None) -> Login:
    """The login that `settings` describe, in force. Raises CompilewatchError without its libraries."""
    if settings is None:
        access.identify_people_by(None)
        return NO_LOGIN
    sessions = Sessions(lasts_s=settings.session_hours * 3600)
    people = People(settings, sessions)
    gate = Middleware(
        LoginMiddleware, settings=settings, people=people, token_of=lambda secret: token_of(reader(), secret)
    )
    host = urlsplit(settings.base_url).hostname
    access.identify_people_by(people.identify, leave_at=None if settings.issuer is None else "logout")
    return Login(_routes(settings, sessions, people), [gate], host)


def _routes(settings: SignIn, sessions: Sessions, people: People) -> list[BaseRoute]:
    if settings.issuer is None:
        return []
    try:
        from compilewatch.dashboard.login.oidc import Provider
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"authlib", "joserfc", "requests"}:
            raise
        raise CompilewatchError(
            f"Signing in needs {error.name}, which is not installed.",
            "Run `pip install 'compilewatch[auth]'`.",
        ) from error
    return LoginRoutes(settings, Provider(settings), sessions, people).routes()
