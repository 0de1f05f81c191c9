"""Cells that hold what their column cannot: a row edited by hand, or by a program that is not this one.

SQLite takes any value into any column, PostgreSQL what fits the column's type, which is more than a record
has: `NaN`, `infinity`, JSON of another shape. What a column can hold follows from its type, what a row can
hold from the record that pages and commands make of it.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError, create_model
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Enum,
    Float,
    Integer,
    LargeBinary,
    String,
    Table,
    and_,
    cast,
    false,
    func,
    not_,
    or_,
    select,
    type_coerce,
)
from sqlmodel.sql.sqltypes import UTCDateTime

from compilewatch.db.engine.record_tables import TRIAGE_EVENT, record_of
from compilewatch.db.engine.tables import (
    CONDITIONS,
    DETAIL_PARTS,
    METADATA,
    REGRESSION,
    RUN,
    RUN_CASE,
    TRIAL,
    TRIAL_DETAIL,
)
from compilewatch.db.judge.compare.recorded_regressions import Regression, TriageEvent
from compilewatch.db.queries.history_points import is_current
from compilewatch.db.records.fields import first_problem
from compilewatch.db.records.trial import Build, Machine, Source, Trial

_MOMENT = "".join("[0-9]" if part == "0" else part for part in "0000-00-00 00:00:00.000000")
"""How SQLAlchemy stores a moment in SQLite, as a GLOB."""
_SECONDS = len("2026-11-20 18:00:00")
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
"""What Python's calendar holds."""
_NOT_ASCII = "*[^\x01-\x7f]*"
_BATCH = 500


def _parts(record: type[BaseModel], *names: str) -> dict[str, Any]:
    return {name: (record.model_fields[name].annotation, record.model_fields[name]) for name in names}


DETAIL: type[BaseModel] = create_model("Detail", **_parts(Trial, *DETAIL_PARTS))
"""The nested parts of a trial's record, those that a row of `trial_detail` holds."""
_NAMES: dict[str, tuple[type[BaseModel], str]] = {
    "source_name": (Source, "name"),
    "machine_name": (Machine, "name"),
    "device_uuid": (Machine, "device_uuid"),
    "build_label": (Build, "label"),
}
"""What a row of `trial` has of its stack, and of which record it is a field."""
_RECORDS: dict[Table, type[BaseModel]] = {
    **{table: record for table in METADATA.sorted_tables if (record := record_of(table)) is not None},
    CONDITIONS: create_model("Conditions", **_parts(Build, "settings")),
    TRIAL: create_model("Names", **{column: _parts(*place)[place[1]] for column, place in _NAMES.items()}),
    TRIAL_DETAIL: DETAIL,
    REGRESSION: create_model("Recorded", document=(Regression, ...)),
    RUN: create_model("Advised", advice=(dict[str, Any] | None, None)),
    TRIAGE_EVENT: TriageEvent,
}
"""What is made of the rows of a table, or of those of their columns that are JSON."""


@dataclass(frozen=True)
class WrongValues:
    """A column, the keys of its rows with a value that it cannot hold, and what is wrong with the first.

    `column` is empty where values do not go together.
    """

    table: str
    column: str
    keys: Sequence[tuple[str, ...]]
    problem: str


def all_wrong_values(connection: Connection) -> Iterator[WrongValues]:
    """Those of every table, but for what another release summed up, which is made anew before it is read."""
    for table in METADATA.sorted_tables:
        if table is not RUN_CASE or is_current(connection):
            yield from wrong_values(connection, table)


def wrong_values(connection: Connection, table: Table) -> list[WrongValues]:
    """The columns of `table` with a value that they cannot hold, and the rows that have one.

    Rows are looked at as records only where all their values can be read.
    """
    found: dict[str, dict[tuple[str, ...], str]] = defaultdict(dict)
    if connection.dialect.name == "sqlite":
        for column, key in _undecodable(connection, table):
            found[column][key] = "is no text in UTF-8"
    if not found:
        # The driver reads no row with such a text: these have to go first.
        for column, key, problem in (*_unreadable(connection, table), *_no_records(connection, table)):
            found[column].setdefault(key, problem)
    return [
        WrongValues(table.name, column, tuple(keys), next(iter(keys.values())))
        for column, keys in found.items()
    ]


def _unreadable(connection: Connection, table: Table) -> Iterator[tuple[str, tuple[str, ...], str]]:
    wrong, damaged = _conditions(table, connection.dialect.name)
    labels = [condition.label(f"wrong_{name}") for name, condition in wrong.items()]
    for row in connection.execute(select(*_keys(connection, table), *labels).where(damaged)):
        for name in wrong:
            if row._mapping[f"wrong_{name}"]:
                yield name, _key(table, tuple(row)), "is of another type"


def _no_records(connection: Connection, table: Table) -> Iterator[tuple[str, tuple[str, ...], str]]:
    record = _RECORDS.get(table)
    if record is None:
        return
    keys = _keys(connection, table)
    columns = [table.c[name] for name in record.model_fields if name in table.c]
    _, damaged = _conditions(table, connection.dialect.name)
    statement = select(*(key.label(f"key_{number}") for number, key in enumerate(keys)), *columns)
    statement = statement.where(not_(damaged)).execution_options(yield_per=_BATCH)
    for row in connection.execute(statement):
        try:
            record.model_validate({column.name: row._mapping[column] for column in columns})
        except ValidationError as error:
            places = [details["loc"] for details in error.errors(include_url=False, include_input=False)]
            # A rule that spans columns names none.
            for name in sorted({str(place[0]) if place else "" for place in places}):
                yield name, _key(table, tuple(row)), first_problem(error, "all of it")
        for column in columns:
            if isinstance(column.type, JSON) and not _is_finite(row._mapping[column]):
                yield column.name, _key(table, tuple(row)), "holds a number that is not finite"


def _is_finite(document: Any) -> bool:
    """Whether all numbers of what was JSON are; `1e999` is JSON, and infinite once it is read."""
    try:
        json.dumps(document, allow_nan=False)
    except ValueError:
        return False
    return True


def _keys(connection: Connection, table: Table) -> list[ColumnElement[str]]:
    """The primary key as text, whatever it holds."""
    as_text = type_coerce if connection.dialect.name == "sqlite" else cast
    return [as_text(key, String) for key in table.primary_key]


def _key(table: Table, row: Sequence[Any]) -> tuple[str, ...]:
    return tuple(map(str, row[: len(table.primary_key.columns)]))


@cache
def _conditions(table: Table, dialect: str) -> tuple[dict[str, ColumnElement[bool]], ColumnElement[bool]]:
    """Where a column holds what it cannot, by name, and where any does."""
    wrong = {column.name: unreadable(column, dialect) for column in table.columns}
    return wrong, or_(*wrong.values())


def unreadable(column: Column[Any], dialect: str) -> ColumnElement[bool]:
    """Where `column` holds a value that is not of its type; never unknown, and false for null."""
    wrong = _wrong_in_sqlite(column) if dialect == "sqlite" else _wrong_in_postgresql(column)
    return and_(column.is_not(None), wrong)


def _wrong_in_postgresql(column: Column[Any]) -> ColumnElement[bool]:
    if isinstance(column.type, Enum):
        return type_coerce(column, String).not_in(column.type.enums)
    if isinstance(column.type, Float):
        return column.in_([math.nan, math.inf, -math.inf])
    if isinstance(column.type, UTCDateTime):
        return not_(column.between(_FIRST, _LAST))
    return false()


def _wrong_in_sqlite(column: Column[Any]) -> ColumnElement[bool]:
    raw = type_coerce(column, String)
    wrong: ColumnElement[bool] = false()
    kind = "text"
    # To SQLAlchemy an Enum is a text, too.
    match column.type:
        case Enum():
            wrong = raw.not_in(column.type.enums)
        case JSON():
            wrong = func.json_valid(raw) == 0
        case UTCDateTime():
            seconds = func.substr(raw, 1, _SECONDS)
            # What SQLite takes for the 31st of April is the 1st of May to it.
            other = func.strftime("%Y-%m-%d %H:%M:%S", seconds, "+0 days").is_distinct_from(seconds)
            wrong = or_(raw.op("NOT GLOB")(_MOMENT), raw < "0001", other)
        case Boolean():
            kind, wrong = "integer", type_coerce(column, Integer).not_in([0, 1])
        case Integer():
            kind = "integer"
        case Float():
            kind, wrong = "real", func.abs(type_coerce(column, Float)) > sys.float_info.max
        case LargeBinary():
            kind = "blob"
    return or_(func.typeof(raw) != kind, wrong)


def _undecodable(connection: Connection, table: Table) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Texts of SQLite that are not in UTF-8, at which its driver gives up."""
    texts = [column for column in table.columns if not isinstance(column.type, LargeBinary)]
    keys = [cast(key, LargeBinary) for key in table.primary_key]
    odd = [
        and_(func.typeof(raw) == "text", raw.op("GLOB")(_NOT_ASCII))
        for raw in (type_coerce(column, String) for column in texts)
    ]
    values = [cast(column, LargeBinary) for column in texts]
    kinds = [func.typeof(type_coerce(column, String)) for column in texts]
    for row in connection.execute(select(*keys, *values, *kinds).where(or_(*odd))):
        key, rest = row[: len(keys)], row[len(keys) :]
        for column, value, kind in zip(texts, rest[: len(texts)], rest[len(texts) :], strict=True):
            if kind == "text" and not _is_utf8(value):
                yield column.name, tuple(part.decode(errors="replace") for part in key)


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
