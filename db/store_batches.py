"""Batches of trials, made into what the tables hold; `db.store_batch` stores them.

Making them needs no database, so that another process can do it (`db.interchange.read_ahead`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, islice
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Table

from db.records import Trial
from db.store_rows import (
    CaseIds,
    Identifier,
    Prepared,
    detail_columns,
    dimension_row,
    prepare,
    sample_columns,
    trial_columns,
)
from db.tables import BUILD, MACHINE, RUN, SERIES, STRATEGY, TRIAL, TRIAL_DETAIL, TRIAL_SAMPLES, WORKLOAD

# In the order in which their rows refer to each other.
DIMENSIONS: dict[str, Table] = {
    "machine": MACHINE,
    "build": BUILD,
    "workload": WORKLOAD,
    "strategy": STRATEGY,
    "series": SERIES,
    "run": RUN,
}
TRIALS_OF_A_BATCH = 1000
_Columns = Mapping[str, Mapping[str, Sequence[Any]]]
_encode = msgspec.msgpack.Encoder().encode


class ReadHereError(Exception):
    """Batches that another process made do not tell enough: the process that stores must read the records."""


class Case(NamedTuple):
    """Trials of one case and run, by their places in the batch: they count in the same rows."""

    ids: CaseIds
    run_id: str
    places: list[int]

    @property
    def keys(self) -> tuple[str, ...]:
        """The ids of the rows of `DIMENSIONS` that these trials refer to."""
        ids = self.ids
        return ids.machine, ids.build, ids.workload, ids.strategy, ids.series, self.run_id


@dataclass(frozen=True, slots=True)
class Batch:
    """Trials as their rows.

    `columns` has the values by table and column; `arrays` tells how many rows of `trial_samples` each trial
    has. `dimensions` has the rows of `DIMENSIONS` that no earlier batch told. `records` are the trials
    themselves, where the process that stores them has read them.
    """

    columns: _Columns
    arrays: Sequence[int]
    cases: list[Case]
    dimensions: Mapping[str, Sequence[dict[str, Any]]]
    records: Sequence[Any] | None

    def __len__(self) -> int:
        return len(self.arrays)

    def of_trials(self, name: str) -> Sequence[Any]:
        """A column of the table `trial`."""
        return self.columns[TRIAL.name][name]

    def only(self, places: Sequence[int]) -> Batch:
        """The trials at `places`, which ascend."""
        now_at = {place: now for now, place in enumerate(places)}
        trials = [place in now_at for place in range(len(self))]
        arrays = [kept for kept, count in zip(trials, self.arrays, strict=True) for _ in range(count)]
        columns: dict[str, Mapping[str, Sequence[Any]]] = {}
        for name, table in self.columns.items():
            rows = arrays if name == TRIAL_SAMPLES.name else trials
            columns[name] = {column: [*compress(values, rows)] for column, values in table.items()}
        cases = [
            Case(case.ids, case.run_id, [now_at[place] for place in case.places if place in now_at])
            for case in self.cases
        ]
        return replace(
            self,
            columns=columns,
            arrays=[*compress(self.arrays, trials)],
            cases=sorted((case for case in cases if case.places), key=lambda case: case.places[0]),
            records=None,
        )

    def packed(self) -> bytes:
        """As a batch travels to the process that stores it: without `records`."""
        # A dimension may hold whole numbers that are too large for msgpack.
        return _encode((self.columns, self.arrays, self.cases, json.dumps(self.dimensions)))


_decode = msgspec.msgpack.Decoder(tuple[_Columns, list[int], list[Case], str]).decode


def unpacked(packed: bytes | memoryview) -> Batch:
    """The batch that another process of this program packed."""
    columns, arrays, cases, dimensions = _decode(packed)
    return Batch(columns, arrays, cases, json.loads(dimensions), records=None)


class BatchMaker:
    """Makes the batches of one transaction."""

    def __init__(self) -> None:
        self._identifier = Identifier()
        self._told: set[tuple[str, str]] = set()

    def batches(self, trials: Iterable[Trial], size: int = TRIALS_OF_A_BATCH) -> Iterator[Batch]:
        """`trials`, `size` at a time."""
        remaining = iter(trials)
        while some := list(islice(remaining, size)):
            yield self.batch(some)

    def batch(self, trials: Sequence[Trial]) -> Batch:
        """`trials` as one batch."""
        prepared = prepare(trials, self._identifier)
        cases: dict[tuple[CaseIds, str], Case] = {}
        dimensions: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for place, entry in enumerate(prepared):
            case = cases.get((entry.ids, entry.trial.run_id))
            if case is None:
                case = Case(entry.ids, entry.trial.run_id, [])
                cases[entry.ids, case.run_id] = case
                self._tell(case, entry, dimensions)
            case.places.append(place)
        return Batch(
            columns={
                TRIAL.name: trial_columns(prepared),
                TRIAL_DETAIL.name: detail_columns(prepared),
                TRIAL_SAMPLES.name: sample_columns(prepared),
            },
            arrays=[len(entry.arrays) for entry in prepared],
            cases=list(cases.values()),
            dimensions=dimensions,
            records=trials,
        )

    def _tell(self, case: Case, entry: Prepared, dimensions: dict[str, list[dict[str, Any]]]) -> None:
        for name, key in zip(DIMENSIONS, case.keys, strict=True):
            if (name, key) not in self._told:
                self._told.add((name, key))
                dimensions[name].append(dimension_row(name, entry.trial, entry.ids))
