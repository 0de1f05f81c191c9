"""Trials by column, some at a time, for exports: what their narrow rows hold already is not computed again.

Reading whole records takes several times as long: JSON of a dozen parts, hundreds of samples, and a check of
each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Enum, Select, Text, cast, select

from db.queries.columns import plain
from db.queries.filters import Filters
from db.queries.records import Stack, StackKey, Stacks
from db.queries.selection import matching, oldest_first
from db.records import Summary
from db.samples import CODEC, Blob, decode_together
from db.session import Database
from db.store_rows import SAMPLE_KINDS
from db.tables import TRIAL, TRIAL_DETAIL, TRIAL_SAMPLES

_BATCH = 1000
_COLUMNS = {
    column.name: plain(column, "str") if isinstance(column.type, Enum) else column for column in TRIAL.c
}
_NOTHING = Blob(b"", CODEC, 0)


@dataclass(frozen=True, eq=False)
class TrialBatch:
    """Some trials: `columns` are those of the table `trial`, enums as text; the rest has an entry for each.

    `summaries` are None where a trial has none. The batch can be asked for `arrays` until the next is.
    """

    columns: Mapping[str, Sequence[Any]]
    stacks: Sequence[Stack]
    summaries: Sequence[Summary | None]
    _connection: Connection

    def arrays(self) -> dict[str, tuple[NDArray[np.int64], list[int]]]:
        """Of every kind of array, those of all trials one after the other, and where each begins; the last
        entry is where all end. In ns.
        """
        trial_ids = self.columns["trial_id"]
        found: dict[str, dict[str, Blob]] = {kind: {} for kind in SAMPLE_KINDS}
        statement = select(*TRIAL_SAMPLES.c).where(TRIAL_SAMPLES.c.trial_id.in_(trial_ids))
        for trial_id, kind, n, codec, data in self._connection.execute(statement).all():
            found[kind][trial_id] = Blob(data, codec, n)
        return {
            kind: decode_together([blobs.get(trial_id, _NOTHING) for trial_id in trial_ids])
            for kind, blobs in found.items()
        }


def trial_batches(db: Database, filters: Filters) -> Iterator[TrialBatch]:
    """All matching trials, oldest first, in constant memory and from one moment's data."""
    statement = _statement().where(*matching(filters)).order_by(*oldest_first())
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


def _statement() -> Select[Any]:
    # As text: most trials have none, and the type would look at each.
    summary = cast(TRIAL_DETAIL.c.summary, Text)
    return select(*_COLUMNS.values(), summary).join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)
