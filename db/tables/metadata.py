"""What all tables share: their metadata, the base of their rows, and column types."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum

from sqlalchemy import BigInteger, Enum, MetaData
from sqlalchemy.orm import declared_attr, registry
from sqlmodel import Field, SQLModel

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class JsonText(str):
    """JSON that is written already; a JSON column takes it as it is."""

    __slots__ = ()


def by_value(enum: type[StrEnum]) -> Enum:
    """Text column holding the enum's values; a value that a later release adds needs no migration."""
    return Enum(
        enum,
        native_enum=False,
        length=32,
        create_constraint=False,
        validate_strings=True,
        values_callable=lambda members: [member.value for member in members],
    )


class Row(SQLModel, registry=registry(metadata=METADATA)):
    """Base of all tables, on a registry of their own: a reloaded module builds them anew."""

    # Rows are of validated records, so nothing validates them.
    model_config = {"defer_build": True}

    @declared_attr  # type: ignore[arg-type]
    def __tablename__(cls) -> str:  # noqa: N805
        """`trial_detail` of `TrialDetailRow`."""
        return re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__.removesuffix("Row")).lower()


class Tallied(SQLModel):
    """What the facets show of every dimension, kept at write time; a cancelled trial has not failed."""

    model_config = {"defer_build": True}

    trials: int = Field(default=0, sa_type=BigInteger)
    failed_trials: int = Field(default=0, sa_type=BigInteger)
    cancelled_trials: int = Field(sa_type=BigInteger, sa_column_kwargs={"server_default": "0"})
    first_seen_at: datetime | None = None
    last_seen_at: datetime | None = None
