"""API tokens: made, revoked, and found by their secret."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import update

from compilewatch.db.engine.repository import Repository
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import API_TOKEN
from compilewatch.db.errors import NotFoundError
from compilewatch.db.records.access import Token, secret_hash

TOKENS = Repository(Token, API_TOKEN, order=(API_TOKEN.c.created_at.desc(), API_TOKEN.c.token_id))
"""The newest first, also those that have ended."""


def token_of(db: Database, secret: str) -> Token | None:
    """The token with this secret, ended or not; None where there is none.

    Looked up by the hash, so that the time it takes says nothing about any secret.
    """
    return next(iter(TOKENS.all(db, API_TOKEN.c.secret_hash == secret_hash(secret))), None)


def revoke_token(db: Database, token_id: str, *, at: datetime, by: str) -> Token:
    """Let a token open nothing any more. A second time changes nothing. Raises NotFoundError."""
    with db.write() as connection:
        connection.execute(
            update(API_TOKEN)
            .where(API_TOKEN.c.token_id == token_id, API_TOKEN.c.revoked_at.is_(None))
            .values(revoked_at=at, revoked_by=by)
        )
    token = TOKENS.get(db, token_id)
    if token is None:
        raise NotFoundError(f"There is no token {token_id}.", "See `compilewatch token list`.")
    return token
