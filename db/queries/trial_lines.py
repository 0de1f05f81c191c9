"""Whole trial records as lines of JSON, for exports: what is stored as JSON is written as it is stored."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic_core import to_json
from sqlalchemy import RowMapping, Text, cast, select

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.records import TRIAL_COLUMNS, Stack, whole_rows
from compilewatch.db.queries.selection import matching, oldest_first
from compilewatch.db.records.trial import Trial
from compilewatch.db.tables.trials import DETAIL_PARTS, SAMPLE_KINDS, TRIAL, TRIAL_DETAIL

_SCHEMA = Trial.model_fields["schema_"].default


def trial_lines(db: Database, filters: Filters) -> Iterator[bytes]:
    """All matching trials, oldest first, in constant memory and from one moment's data.

    Each is the record of `db.queries.records.trial_records` as JSON without what has its default.
    """
    # As text: neither SQLAlchemy nor the driver takes it apart.
    details = [cast(TRIAL_DETAIL.c[name], Text).label(name) for name in DETAIL_PARTS]
    whole = select(*TRIAL_COLUMNS, *details).join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)
    statement = whole.where(*matching(filters)).order_by(*oldest_first())
    settings: dict[Stack, bytes] = {}
    with db.read() as connection:
        for row, stack, samples in whole_rows(connection, statement):
            if stack not in settings:
                settings[stack] = _setting(stack)
            yield _line(row, settings[stack], samples)


def _setting(stack: Stack) -> bytes:
    parts = [
        f'"{name}":{part.model_dump_json(exclude_defaults=True)}' for name, part in stack.parts().items()
    ]
    return ",".join(parts).encode()


def _line(row: RowMapping, setting: bytes, samples: dict[str, list[int]]) -> bytes:
    """In the order of the record's fields, which is how `db.interchange.files.trial_jsonl` reads it
    quickly."""
    head = {
        "schema": _SCHEMA,
        **{name: row[name] for name in ("trial_id", "run_id", "started_at", "ended_at", "suite", "label")},
        "source": {"kind": row["source_kind"].value, "name": row["source_name"]},
    }
    parts = [to_json(head)[:-1], setting, b'"status":"%b"' % row["status"].value.encode()]
    stored = ((name, row[name]) for name in DETAIL_PARTS)
    parts += [b'"%b":%b' % (name.encode(), text.encode()) for name, text in stored if text is not None]
    arrays = ((kind, samples[kind]) for kind in SAMPLE_KINDS if kind in samples)
    parts += [b'"%b":%b' % (kind.encode(), to_json(values)) for kind, values in arrays]
    return b",".join(parts) + b"}"
