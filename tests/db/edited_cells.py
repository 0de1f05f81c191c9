"""Each column of each table in turn set to what a person, or another program, may write into it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Enum,
    Float,
    Integer,
    LargeBinary,
    Table,
    bindparam,
    literal_column,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError
from sqlmodel.sql.sqltypes import UTCDateTime

HUGE = 2**62
ABSURD = "\u202e" * 3 + "x" * 100_000 + "</script>"


class Cell(NamedTuple):
    """A column, what is written into it, and the expression of SQL that does."""

    column: Column[Any]
    name: str
    value: Any
    written: str = ":value"

    @property
    def is_legal(self) -> bool:
        """Whether the column may hold it, whatever the row's other columns then mean."""
        kind = self.column.type
        return (
            self.name in ("null", "absurd")
            or (self.name == "huge" and isinstance(kind, Integer | Float))
            or (self.name == "real" and isinstance(kind, Float))
        )


def edited_cells(table: Table, dialect: str) -> Iterator[Cell]:
    """Every column of `table` with each kind of value; the database may refuse some."""
    for column in table.columns:
        yield Cell(column, "null", None)
        of_any = {"blob": b"\xff\x00", "text": "seven", "huge": HUGE, "real": 1.5}
        wrong: dict[str, Any] = of_any if dialect == "sqlite" else {}
        kind = column.type
        if isinstance(kind, Enum):
            wrong = {"word": "no-such-word", "blob": b"\xff"} if dialect == "sqlite" else {"word": "no-such"}
        elif isinstance(kind, JSON):
            wrong = {"number": "7", "lists": "[[7]]", "word": '"seven"', "infinite": '{"x": 1e999}'}
            wrong |= {"half": '{"x":', "blob": b"\xff\x00"} if dialect == "sqlite" else {}
        elif isinstance(kind, UTCDateTime):
            if dialect == "sqlite":
                wrong = of_any | {"day": "2026-02-31 00:00:00.000000", "seven": "7", "date": "2026-02-03"}
            else:
                wrong = {"infinite": "infinity", "ancient": "4000-01-01 BC", "late": "20000-01-01"}
        elif isinstance(kind, Float):
            wrong |= {"infinite": math.inf, "negative infinite": -math.inf, "huge": 1e308}
            wrong |= {} if dialect == "sqlite" else {"nan": math.nan}
        elif isinstance(kind, Boolean):
            wrong |= {"two": 2} if dialect == "sqlite" else {}
        elif isinstance(kind, Integer):
            wrong |= {"huge": HUGE}
        elif isinstance(kind, LargeBinary):
            wrong = {"text": "seven", "number": 7} if dialect == "sqlite" else {}
        else:
            # A number becomes a text there, which is what the column holds.
            wrong = {"absurd": ABSURD, **({"blob": b"\xff\x00"} if dialect == "sqlite" else {})}
            if dialect == "sqlite":
                yield Cell(column, "bytes", b"caf\xe9", "CAST(:value AS TEXT)")
        for name, value in wrong.items():
            yield Cell(column, name, value, _cast(column, dialect))


def _cast(column: Column[Any], dialect: str) -> str:
    """PostgreSQL has to know what a text is to be; SQLite takes it as it comes."""
    if dialect == "sqlite":
        return ":value"
    if isinstance(column.type, JSON):
        return "CAST(:value AS json)"
    return "CAST(:value AS timestamptz)" if isinstance(column.type, UTCDateTime) else ":value"


def edit(connection: Connection, table: Table, cell: Cell) -> bool:
    """Write `cell` into the first row of `table` that has something there; whether the database let it in."""
    filled = literal_column(f'"{cell.column.name}" IS NOT NULL')
    keys = [literal_column(f'"{key.name}"').label(key.name) for key in table.primary_key]
    row = connection.execute(select(*keys).select_from(table).order_by(filled.desc(), *keys).limit(1)).first()
    assert row is not None, f"{table.name} is empty"
    where = " AND ".join(f'"{key.name}" = :key{number}' for number, key in enumerate(table.primary_key))
    statement = text(f'UPDATE "{table.name}" SET "{cell.column.name}" = {cell.written} WHERE {where}')
    values = {f"key{number}": value for number, value in enumerate(row)}
    with suppress(DBAPIError), connection.begin_nested():
        connection.execute(statement.bindparams(bindparam("value", cell.value)), values)
        return True
    return False
