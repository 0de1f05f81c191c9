"""API tokens: all of them, one by its id, or the one that a secret belongs to."""

from __future__ import annotations

from sqlalchemy import ColumnElement, select

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.selection import read_records
from compilewatch.db.records.service.tokens import Token, secret_hash
from compilewatch.db.tables.trials import API_TOKEN


def tokens(db: Database) -> list[Token]:
    """Every token, newest first, also those that have ended."""
    statement = select(API_TOKEN).order_by(API_TOKEN.c.created_at.desc(), API_TOKEN.c.token_id)
    return read_records(db, Token, statement)


def find_token(db: Database, token_id: str) -> Token | None:
    """The token with this id, ended or not; None where there is none."""
    return None if "\x00" in token_id else _one(db, API_TOKEN.c.token_id == token_id)


def token_of(db: Database, secret: str) -> Token | None:
    """The token with this secret, ended or not; None where there is none.

    Looked up by the hash, so that the time it takes says nothing about any secret.
    """
    return _one(db, API_TOKEN.c.secret_hash == secret_hash(secret))


def _one(db: Database, condition: ColumnElement[bool]) -> Token | None:
    return next(iter(read_records(db, Token, select(API_TOKEN).where(condition))), None)
