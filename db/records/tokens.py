"""API tokens: what a program shows instead of a login. Only a hash is stored; the secret is shown once."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from compilewatch.db.records.fields import Closed, UtcDatetime

SECRET_BYTES = 32
PREFIX = "cwt_"
"""So that a scanner of leaked secrets can know one by its look."""

TokenName = Annotated[
    str, StringConstraints(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][\w.+@:-]*$")
]


class Scope(StrEnum):
    """What a token opens; `requests` and `annotations` write, each nothing but what it is called."""

    API = "api"
    METRICS = "metrics"
    REPORTS = "reports"
    REQUESTS = "requests"
    ANNOTATIONS = "annotations"


class Token(Closed):
    """A token as it is stored. `secret_hash` finds it, and gives nothing away of the secret."""

    token_id: str
    name: TokenName
    secret_hash: str
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]
    created_at: UtcDatetime
    created_by: str
    expires_at: UtcDatetime | None = None
    revoked_at: UtcDatetime | None = None
    revoked_by: str | None = None

    def has_ended(self, now: datetime) -> bool:
        return self.revoked_at is not None or (self.expires_at is not None and self.expires_at <= now)

    def opens(self, scope: Scope, now: datetime) -> bool:
        """Whether it is let in to what needs `scope`."""
        return scope in self.scopes and not self.has_ended(now)


def new_secret() -> str:
    """What the program that gets the token sends: 256 random bits, in an alphabet that headers take."""
    return PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def secret_hash(secret: str) -> str:
    """What is stored of a secret. It is random and long, so that no slow hash is needed to protect it."""
    return hashlib.sha256(secret.encode()).hexdigest()


def new_token_id() -> str:
    """Eight random hexadecimal digits, by which people name a token; no secret."""
    return secrets.token_hex(4)
