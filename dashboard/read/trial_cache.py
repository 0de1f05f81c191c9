"""What pages show of trials, kept from one data version to the next: after a write only what grew is read.

Stored trials neither change nor go away, so what was made of them stays true until trials join them: more of
the same run, machine and build, tonight's or a past one that is imported late. `db.queries.run_parts` counts
those, and every read of this module asks for the counts first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import compress
from threading import Lock
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from dashboard.read.incremental_frame import IncrementalFrame, rows_where
from db.engine.session import Database
from db.metrics.case_columns import CASE_KEYS
from db.metrics.cases import summarize_cases
from db.metrics.eligibility import is_canary, without_canaries
from db.metrics.trend import series_points
from db.queries.data_version import data_version
from db.queries.filters import Filters
from db.queries.run_parts import RunPart, parts_within
from db.queries.trials import trials_of_runs

SELECTIONS = 16
"""Of how many selections rows are kept; the one asked for longest ago is the first to go."""

MOST_EXCLUDED = 5_000
"""So many trials that are there are named in a query for more; where there are more, all are read again."""

By = Literal["run", "build"]
_Key = tuple[object, ...]


class _Part(NamedTuple):
    """A part, with the ends of the time selected that cut it; None where they leave it whole."""

    run_id: str
    machine_id: str
    build_id: str
    since: datetime | None
    until: datetime | None

    @property
    def of_trial(self) -> tuple[str, str, str]:
        return self.run_id, self.machine_id, self.build_id

    @property
    def build(self) -> tuple[str, str]:
        return self.build_id, self.machine_id


def _part(part: RunPart, filters: Filters) -> _Part:
    since, until = filters.since, filters.until
    return _Part(
        *part[:3],
        since if since is not None and part.first_seen_at < since else None,
        until if until is not None and part.last_seen_at > until else None,
    )


@dataclass(frozen=True)
class _Selected:
    """Trials, and the parts they are of with what each was made of."""

    trials: pd.DataFrame
    parts: Mapping[_Part, Hashable]


class _Selection:
    """What is kept of the trials that filters of workload, strategy, suite and the like let through.

    Of some `workloads` nothing is read or made that is there in `wider`, which is of all.
    """

    def __init__(self, workloads: Sequence[str]) -> None:
        self.wider: _Selection | None = None
        self._workloads = workloads
        self._trials: IncrementalFrame[_Part] = IncrementalFrame(["started_at", "trial_id"])
        self._frames: dict[str, IncrementalFrame[_Key]] = {
            "run": IncrementalFrame(["last_started_at", *CASE_KEYS, "run_id"]),
            "build": IncrementalFrame(["last_started_at", *CASE_KEYS, "run_id"]),
            "cases": IncrementalFrame(CASE_KEYS),
        }

    def take(self, database: Database, filters: Filters) -> _Selected:
        """The trials that `filters` let through."""
        with database.read() as connection:
            parts = {_part(each, filters): each[3:] for each in parts_within(connection, filters)}
            keys: dict[tuple[str, ...], _Part] = {part.of_trial: part for part in parts}

            def read(
                changed: Sequence[_Part], there: pd.DataFrame | None
            ) -> tuple[pd.DataFrame, Sequence[_Part]]:
                known = [] if there is None else there["trial_id"].tolist()
                excluded = known if len(known) <= MOST_EXCLUDED else []
                stamps = {part: parts[part] for part in changed}
                if self.wider is not None and (wide := self.wider._trials.unchanged(stamps)) is not None:
                    return _new_of(self._of_mine(wide), keys, changed, set(known))
                narrowed, runs = filters, None
                if len(changed) < len(parts):
                    narrowed = replace(filters, builds=tuple({part.build_id for part in changed}), runs=())
                    runs = sorted({part.run_id for part in changed})
                trials = trials_of_runs(connection, narrowed, runs, but=excluded)
                return _new_of(trials, keys, changed, set(known))

            return _Selected(self._trials.take_grown(parts, read), parts)

    def _of_mine(self, wide: pd.DataFrame) -> pd.DataFrame:
        return wide[wide["workload"].isin(self._workloads)]

    def points(
        self, selected: _Selected, by: By, cases_of: Callable[[pd.DataFrame], pd.DataFrame]
    ) -> pd.DataFrame:
        def make(trials: pd.DataFrame) -> pd.DataFrame:
            return series_points(cases_of(trials), by=by)

        return self._make(by, selected, make, whole_builds=by == "build")

    def cases(self, selected: _Selected) -> pd.DataFrame:
        def make(trials: pd.DataFrame) -> pd.DataFrame:
            return summarize_cases(without_canaries(trials))

        return self._make("cases", selected, make, whole_builds=True)

    def _make(
        self,
        name: str,
        selected: _Selected,
        make: Callable[[pd.DataFrame], pd.DataFrame],
        *,
        whole_builds: bool,
    ) -> pd.DataFrame:
        names = ("build_id", "machine_id") if whole_builds else ("run_id", "machine_id", "build_id")
        keys: dict[tuple[str, ...], _Key] = {}
        stamps_of: dict[_Key, list[Hashable]] = {}
        for part, stamp in selected.parts.items():
            key: _Key = part.build if whole_builds else part
            keys[part.build if whole_builds else part.of_trial] = key
            stamps_of.setdefault(key, []).append((part, stamp))
        stamps = {key: parts[0] if len(parts) == 1 else frozenset(parts) for key, parts in stamps_of.items()}

        def make_changed(changed: Sequence[_Key]) -> tuple[pd.DataFrame, Sequence[_Key]]:
            rows = self._from_wider(name, {key: stamps[key] for key in changed})
            if rows is None:
                trials = selected.trials
                if len(changed) < len(stamps):
                    wanted = set(changed)
                    trials = _trials_of(trials, {each for each, key in keys.items() if key in wanted}, names)
                rows = make(trials)
            return rows, [keys[each] for each in _columns(rows, *names)]

        return self._frames[name].take(stamps, make_changed)

    def _from_wider(self, name: str, stamps: Mapping[_Key, Hashable]) -> pd.DataFrame | None:
        """None where it is not there: canaries are not made with all the others."""
        if self.wider is None or any(map(is_canary, self._workloads)):
            return None
        wide = self.wider._frames[name].unchanged(stamps)
        return None if wide is None else self._of_mine(wide)


def _trials_of(frame: pd.DataFrame, keys: Set[tuple[str, ...]], names: Sequence[str]) -> pd.DataFrame:
    """The rows whose values in the columns `names` are among `keys`."""
    chosen = frame[names[0]].isin({key[0] for key in keys}).to_numpy(dtype=np.bool_, copy=True)
    places = np.flatnonzero(chosen)
    columns = (frame[name].array.take(places).tolist() for name in names)
    chosen[places] = [each in keys for each in zip(*columns, strict=True)]
    return rows_where(frame, chosen)


def _columns(frame: pd.DataFrame, *names: str) -> list[tuple[str, ...]]:
    """The rows of some columns of text."""
    return list(zip(*(frame[name].tolist() for name in names), strict=True))


def _new_of(
    rows: pd.DataFrame, parts: Mapping[tuple[str, ...], _Part], changed: Sequence[_Part], known: Set[str]
) -> tuple[pd.DataFrame, Sequence[_Part]]:
    """Trials of the parts `changed` that are not `known`, and the part of each: a run that was read has other
    parts as well.
    """
    wanted = set(changed)
    of_rows = [parts.get(each) for each in _columns(rows, "run_id", "machine_id", "build_id")]
    new = [
        part in wanted and trial_id not in known
        for part, trial_id in zip(of_rows, rows["trial_id"].tolist(), strict=True)
    ]
    chosen = np.array(new, dtype=np.bool_)
    return rows_where(rows, chosen), [part for part in compress(of_rows, new) if part is not None]


class TrialCache:
    """What is kept of one database."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._version = 0
        self._selections: OrderedDict[Filters, _Selection] = OrderedDict()

    def trials(self, database: Database, version: int, filters: Filters) -> pd.DataFrame:
        """As `db.queries.trials.trials_frame` returns them."""
        return self._selection(database, version, filters).take(database, filters).trials

    def points(self, database: Database, version: int, filters: Filters, by: By) -> pd.DataFrame:
        """As `db.metrics.trend.series_points` returns them; without canaries unless workloads are named."""
        selection = self._selection(database, version, filters)
        selected = selection.take(database, filters)
        return selection.points(
            selected, by, (lambda trials: trials) if filters.workloads else without_canaries
        )

    def cases(self, database: Database, version: int, filters: Filters) -> pd.DataFrame:
        """As `db.metrics.cases.summarize_cases` returns them, without canaries."""
        selection = self._selection(database, version, filters)
        return selection.cases(selection.take(database, filters))

    def _selection(self, database: Database, version: int, filters: Filters) -> _Selection:
        kind = replace(filters, machines=(), builds=(), runs=(), since=None, until=None)
        newest = self._version
        # Versions only grow: this is another database in the place of the one before. Read without the lock,
        # which everybody needs.
        another = version < newest and data_version(database) < newest
        with self._lock:
            if another:
                self._selections.clear()
                self._version = version
            self._version = max(self._version, version)
            wider = self._selections.get(replace(kind, workloads=())) if kind.workloads else None
            selection = self._selections.setdefault(kind, _Selection(kind.workloads))
            selection.wider = wider
            self._selections.move_to_end(kind)
            while len(self._selections) > SELECTIONS:
                self._selections.popitem(last=False)
            return selection
