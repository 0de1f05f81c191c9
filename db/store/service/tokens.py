"""Writes about API tokens. They are no measurements: the data version stays as it is."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import insert, update

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError
from compilewatch.db.queries.service.tokens import find_token
from compilewatch.db.records.service.tokens import Token
from compilewatch.db.tables.trials import API_TOKEN


def save_token(db: Database, token: Token) -> None:
    row = token.model_dump() | {"scopes": [scope.value for scope in token.scopes]}
    with db.write() as connection:
        connection.execute(insert(API_TOKEN).values(**row))


def revoke_token(db: Database, token_id: str, *, at: datetime, by: str) -> Token:
    """Let a token open nothing any more. A second time changes nothing. Raises NotFoundError."""
    with db.write() as connection:
        connection.execute(
            update(API_TOKEN)
            .where(API_TOKEN.c.token_id == token_id, API_TOKEN.c.revoked_at.is_(None))
            .values(revoked_at=at, revoked_by=by)
        )
    token = find_token(db, token_id)
    if token is None:
        raise NotFoundError(f"There is no token {token_id}.", "See `compilewatch token list`.")
    return token
