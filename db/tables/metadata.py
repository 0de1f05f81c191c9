"""What all tables share: their metadata, the base of their rows, and column types."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from types import NoneType
from typing import Any, get_args

from pydantic import AwareDatetime, BaseModel, create_model
from sqlalchemy import JSON, BigInteger, Enum, MetaData, Table
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


KEY: dict[str, Any] = {"primary_key": True}
"""What `table_of` is told of a column that is the key, or a part of it."""


def table_of(
    name: str,
    record: type[BaseModel],
    /,
    *more: type[SQLModel],
    without: Collection[str] = (),
    **options: dict[str, Any],
) -> Table:
    """The table of what `record` describes, a column for each field that is not left out: parts are JSON.

    `options` are those of columns by their names; one that is no field is a text before all others.
    """
    fields = {column: field for column, field in record.model_fields.items() if column not in without}
    columns: dict[str, Any] = {
        each: (str, Field(**own)) for each, own in options.items() if each not in fields
    }
    for column, field in fields.items():
        is_optional = NoneType in get_args(field.annotation)
        kind: Any = get_args(field.annotation)[0] if is_optional else field.annotation
        kind = datetime if kind is AwareDatetime else getattr(kind, "__origin__", kind)
        own: dict[str, Any] = {}
        if issubclass(kind, StrEnum):
            own["sa_type"] = by_value(kind)
        elif not issubclass(kind, str | float | bool | datetime):
            own["sa_type"] = BigInteger if kind is int else JSON(none_as_null=is_optional)
        columns[column] = (kind | None if is_optional else kind, Field(**own | options.get(column, {})))
    bases: Any = (Row, *more)
    create_model(name, __base__=bases, __module__=__name__, __cls_kwargs__={"table": True}, **columns)
    METADATA.tables[name].info[_RECORD] = record
    return METADATA.tables[name]


_RECORD = "record"


def record_of(table: Table) -> type[BaseModel] | None:
    """What `table_of` made `table` of; None for a table that is no record's."""
    record: type[BaseModel] | None = table.info.get(_RECORD)
    return record
