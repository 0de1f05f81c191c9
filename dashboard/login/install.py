"""Puts the login of the configuration in front of the application."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from pydantic import ValidationError
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from compilewatch.dashboard.login import access
from compilewatch.dashboard.login.middleware import LoginMiddleware, People
from compilewatch.dashboard.login.sessions import Sessions
from compilewatch.dashboard.read.database import reader
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.records.access import SignIn
from compilewatch.db.service.tokens import token_of

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
        from compilewatch.dashboard.login.routes import LoginRoutes
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"authlib", "joserfc", "requests"}:
            raise
        raise CompilewatchError(
            f"Signing in needs {error.name}, which is not installed.",
            "Run `pip install 'compilewatch[auth]'`.",
        ) from error
    return LoginRoutes(settings, Provider(settings), sessions, people).routes()
