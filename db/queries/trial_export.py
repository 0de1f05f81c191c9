"""Trials by column, some at a time, for exports: what their narrow rows hold already is not computed again.

Reading whole records takes several times as long: JSON of a dozen parts, hundreds of samples, and a check of
each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json
from sqlalchemy import Connection, Enum, RowMapping, Text, cast, select

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.records import TRIAL_COLUMNS, Stack, StackKey, Stacks, load_samples, whole_rows
from compilewatch.db.queries.selection import matching, oldest_first, plain
from compilewatch.db.records.trial import Summary, Trial
from compilewatch.db.tables.trials import DETAIL_PARTS, SAMPLE_KINDS, TRIAL, TRIAL_DETAIL

_BATCH = 1000
_COLUMNS = {column.name: plain(column) if isinstance(column.type, Enum) else column for column in TRIAL.c}


@dataclass(frozen=True, eq=False)
class TrialBatch:
    """Some trials: `columns` are those of the table `trial`, enums as text; the rest has an entry for each.

    `summaries` are None where a trial has none. The batch can be asked for `arrays` until the next is.
    """

    columns: Mapping[str, Sequence[Any]]
    stacks: Sequence[Stack]
    summaries: Sequence[Summary | None]
    _connection: Connection

    def arrays(self) -> dict[str, list[list[int]]]:
        """Of every kind of array that of each trial, in ns; empty where it has none."""
        trial_ids = self.columns["trial_id"]
        samples = load_samples(self._connection, list(trial_ids))
        return {
            kind: [samples.get(trial_id, {}).get(kind, []) for trial_id in trial_ids] for kind in SAMPLE_KINDS
        }


def trial_batches(db: Database, filters: Filters) -> Iterator[TrialBatch]:
    """All matching trials, oldest first, in constant memory and from one moment's data."""
    # As text: most trials have none, and the type would look at each.
    summary = cast(TRIAL_DETAIL.c.summary, Text)
    joined = select(*_COLUMNS.values(), summary).join(
        TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id
    )
    statement = joined.where(*matching(filters)).order_by(*oldest_first())
    with db.read() as connection:
        stacks = Stacks(connection)
        result = connection.execute(statement.execution_options(yield_per=_BATCH))
        for rows in result.partitions():
            *columns, summaries = zip(*rows, strict=True)
            named = dict(zip(_COLUMNS, columns, strict=True))
            keys = [*map(StackKey._make, zip(*[named[name] for name in StackKey._fields], strict=True))]
            stacks.load(keys)
            yield TrialBatch(
                columns=named,
                stacks=[stacks.of(key) for key in keys],
                # As stored: what an earlier release took goes out too, and is refused where it comes in.
                summaries=[
                    None if text is None else Summary.model_construct(**json.loads(text))
                    for text in summaries
                ],
                _connection=connection,
            )


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
