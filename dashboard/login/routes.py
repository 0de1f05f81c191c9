"""The way in and out: `/login`, where the provider sends people back to, and `/logout`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from urllib.parse import urlsplit

from anyio import to_thread
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from compilewatch.dashboard.document.page import FORM_POLICY, document, message
from compilewatch.dashboard.http.rate_limit import RateLimit
from compilewatch.dashboard.login.access import AccessError
from compilewatch.dashboard.login.middleware import People
from compilewatch.dashboard.login.oidc import CALLBACK, Provider
from compilewatch.dashboard.login.people import person_of_claims
from compilewatch.dashboard.login.sessions import Sessions
from compilewatch.db.records.access import SignIn

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
