"""What pages show of trials, kept from one data version to the next: after a write only what grew is read.

Stored trials neither change nor go away, so what was made of those of one run, machine and build stays true
until more join them. `db.queries.run_parts` counts those, and every read asks for the counts first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock

import pandas as pd

from db.columns.case import CASE_KEYS
from db.engine.session import Database
from db.metrics.eligibility import without_canaries
from db.metrics.trend import series_points
from db.queries.data_version import data_version
from db.queries.filters import Filters
from db.queries.run_parts import RunPart, parts_within
from db.queries.trials import trials_frame, trials_of_runs

MOST_PARTS = 64
"""A selection of more is read whole: twice as many as the newest runs that most pages show."""
MOST_ROWS = 100_000
"""So many rows stay, those asked for longest ago going first: 60 MB of trials."""

_PART = ["run_id", "machine_id", "build_id"]
_TRIALS = ["started_at", "trial_id"]
_POINTS = ["last_started_at", *CASE_KEYS, "run_id"]
_Keys = Mapping[tuple[str, ...], Hashable]


class TrialCache:
    """What is kept of one database. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._frames: OrderedDict[Hashable, pd.DataFrame] = OrderedDict()
        self._rows = 0
        self._version = 0

    def trials(self, database: Database, filters: Filters) -> pd.DataFrame:
        """As `db.queries.trials.trials_frame` returns them."""
        keys = self._keys(database, filters)
        return (
            self._trials(database, filters, keys)
            if len(keys) <= MOST_PARTS
            else trials_frame(database, filters)
        )

    def points(self, database: Database, filters: Filters) -> pd.DataFrame:
        """As `db.metrics.trend.series_points` by run, without canaries unless workloads are named."""

        def points_of(trials: pd.DataFrame) -> pd.DataFrame:
            return series_points(trials if filters.workloads else without_canaries(trials), by="run")

        keys = self._keys(database, filters)
        if len(keys) > MOST_PARTS:
            return points_of(trials_frame(database, filters))
        read = partial(self._trials, database, filters)
        return self._joined("points", keys, lambda changed: points_of(read(changed)), _POINTS)

    def _trials(self, database: Database, filters: Filters, keys: _Keys) -> pd.DataFrame:
        def read(changed: _Keys) -> pd.DataFrame:
            builds = tuple({build for _, _, build in changed})
            narrowed = replace(filters, builds=builds, runs=()) if changed else filters
            with database.read() as connection:
                return trials_of_runs(connection, narrowed, sorted({run for run, *_ in changed}))

        return self._joined("trials", keys, read, _TRIALS)

    def _keys(self, database: Database, filters: Filters) -> _Keys:
        """Each part selected, and what decides its rows: filters of trials, its figures, what cuts it."""
        self._forget_another(data_version(database))
        kind = replace(filters, machines=(), builds=(), runs=(), since=None, until=None)
        with database.read() as connection:
            parts = parts_within(connection, filters)
        return {part[:3]: (kind, part, *_cut(part, filters)) for part in parts}

    def _joined(
        self, kind: str, keys: _Keys, make: Callable[[_Keys], pd.DataFrame], order: Sequence[str]
    ) -> pd.DataFrame:
        """The rows of all parts in `order`; `make` is asked for those that are not there."""
        with self._lock:
            frames = {part: self._frames.get((kind, key)) for part, key in keys.items()}
            for part, frame in frames.items():
                if frame is not None:
                    self._frames.move_to_end((kind, keys[part]))
        changed = {part: keys[part] for part, frame in frames.items() if frame is None}
        if changed or not keys:
            made = make(changed)
            places = made.groupby(_PART, sort=False).indices
            new = {part: made.iloc[places.get(part, [])] for part in changed}
            self._keep({(kind, keys[part]): frame for part, frame in new.items()})
            frames |= new
        joined = pd.concat(frames.values(), ignore_index=True) if keys else made
        moments = joined[order[0]]
        in_order = moments.is_monotonic_increasing and moments.is_unique
        return joined if in_order else joined.sort_values(list(order), ignore_index=True)

    def _keep(self, frames: Mapping[Hashable, pd.DataFrame]) -> None:
        with self._lock:
            for key, frame in frames.items():
                self._rows += len(frame) - len(self._frames.pop(key, ()))
                self._frames[key] = frame
            while self._rows > MOST_ROWS:
                self._rows -= len(self._frames.popitem(last=False)[1])

    def _forget_another(self, version: int) -> None:
        """Versions only grow: with a lower one this is another database in the place of the one before."""
        with self._lock:
            if version < self._version:
                self._frames.clear()
                self._rows = 0
            self._version = version


def _cut(part: RunPart, filters: Filters) -> tuple[Hashable, Hashable]:
    """The ends of the time selected that cut a part; None where they leave it whole."""
    since, until = filters.since, filters.until
    return (
        since if since is not None and part.first_seen_at < since else None,
        until if until is not None and part.last_seen_at > until else None,
    )
