"""Whole trial records as lines of JSON, for exports: what is stored as JSON is written as it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from sqlalchemy import RowMapping, Select, Text, cast, select

from db.queries.filters import Filters
from db.queries.records import TRIAL_COLUMNS, Stack, StackKey, Stacks, load_samples, stack_key
from db.queries.selection import matching, oldest_first
from db.records import SCHEMAS
from db.session import Database
from db.store_rows import DETAIL_PARTS, SAMPLE_KINDS
from db.tables import TRIAL, TRIAL_DETAIL

_BATCH = 500
_encode = msgspec.json.Encoder().encode


def trial_lines(db: Database, filters: Filters) -> Iterator[bytes]:
    """All matching trials, oldest first, in constant memory and from one moment's data.

    Each is the record of `db.queries.records.trial_records` as JSON without what has its default.
    """
    statement = _statement().where(*matching(filters)).order_by(*oldest_first())
    settings: dict[StackKey, bytes] = {}
    with db.read() as connection:
        stacks = Stacks(connection)
        result = connection.execute(statement.execution_options(yield_per=_BATCH)).mappings()
        for rows in result.partitions():
            samples = load_samples(connection, [row["trial_id"] for row in rows])
            keys = [stack_key(row) for row in rows]
            stacks.load(keys)
            for row, key in zip(rows, keys, strict=True):
                if key not in settings:
                    settings[key] = _setting(stacks.of(key))
                yield _line(row, settings[key], samples[row["trial_id"]])


def _statement() -> Select[Any]:
    # As text: neither SQLAlchemy nor the driver takes it apart.
    details = [cast(TRIAL_DETAIL.c[name], Text).label(name) for name in DETAIL_PARTS]
    return select(*TRIAL_COLUMNS, *details).join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)


def _setting(stack: Stack) -> bytes:
    parts = [
        f'"{name}":{part.model_dump_json(exclude_defaults=True)}' for name, part in stack.parts().items()
    ]
    return ",".join(parts).encode()


def _line(row: RowMapping, setting: bytes, samples: dict[str, list[int]]) -> bytes:
    """In the order of the record's fields, which is how `db.interchange.trial_jsonl` reads it quickly."""
    head = {
        "schema": SCHEMAS[row["record_version"]],
        **{name: row[name] for name in ("trial_id", "run_id", "started_at", "ended_at", "suite", "label")},
        "source": {"kind": row["source_kind"].value, "name": row["source_name"]},
    }
    parts = [_encode(head)[:-1], setting, b'"status":"%b"' % row["status"].value.encode()]
    stored = ((name, row[name]) for name in DETAIL_PARTS)
    parts += [b'"%b":%b' % (name.encode(), text.encode()) for name, text in stored if text is not None]
    arrays = ((kind, samples[kind]) for kind in SAMPLE_KINDS if kind in samples)
    parts += [b'"%b":%b' % (kind.encode(), _encode(values)) for kind, values in arrays]
    return b",".join(parts) + b"}"
