"""The table of API tokens: who may ask without a login, for what, until when. It holds no secret."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import JSON, Index, Table
from sqlmodel import Field

from db.tables.metadata import METADATA, Row


class ApiTokenRow(Row, table=True):
    """A token as in `db.records.service.tokens`. Revoking it leaves that it was there."""

    __table_args__ = (Index(None, "secret_hash", unique=True),)

    token_id: str = Field(primary_key=True)
    name: str
    secret_hash: str
    scopes: list[str] = Field(sa_type=JSON)
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None


API_TOKEN: Table = METADATA.tables["api_token"]
