"""Writing trials in one transaction: what is new is inserted, what follows from it is kept up to date."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    Connection,
    Table,
    Update,
    and_,
    bindparam,
    case,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from db.errors import ConflictError
from db.queries.records import load_trials
from db.quick_trials import whole
from db.records import FailureKind, Status, Trial
from db.store_insert import insert_columns
from db.store_rows import (
    DETAIL_PARTS,
    CaseIds,
    Identifier,
    Prepared,
    detail_columns,
    dimension_row,
    prepare,
    sample_columns,
    trial_columns,
)
from db.store_run_parts import RunParts
from db.tables import (
    BUILD,
    DATA_VERSION,
    LATEST,
    MACHINE,
    RUN,
    SERIES,
    STRATEGY,
    TRIAL,
    TRIAL_DETAIL,
    TRIAL_SAMPLES,
    WORKLOAD,
)

# In the order in which their rows refer to each other.
_DIMENSIONS: dict[str, Table] = {
    "machine": MACHINE,
    "build": BUILD,
    "workload": WORKLOAD,
    "strategy": STRATEGY,
    "series": SERIES,
    "run": RUN,
}
# What a dimension was last called, and where a trial says it.
_LAST_CALLED = {"machine": "name", "build": "label"}
_STORED_HASHES = select(TRIAL.c.trial_id, TRIAL.c.content_hash).where(
    TRIAL.c.trial_id.in_(bindparam("trial_ids", expanding=True))
)


def lock_data_version(connection: Connection) -> None:
    """Make concurrent writers wait for each other.

    SQLite's write lock is held already; on PostgreSQL this row is the lock, so that what a writer found to be
    missing is still missing when it inserts it.
    """
    connection.execute(select(DATA_VERSION.c.version).with_for_update())


def bump_data_version(connection: Connection) -> None:
    """Say that something changed: whoever cached what was read before reads it anew."""
    connection.execute(update(DATA_VERSION).values(version=DATA_VERSION.c.version + 1))


def upsert(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """An insert that can say what to do on a conflict."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)


@dataclass(slots=True)
class _Tally:
    """What a transaction adds to one row of a dimension."""

    trials: int
    failed_trials: int
    first_seen_at: datetime
    last_seen_at: datetime
    last_called: str | None

    def add(
        self, trials: int, failed_trials: int, first: datetime, last: datetime, called: str | None
    ) -> None:
        """Count more; of two that were seen last at one moment the one that came later names the row."""
        self.trials += trials
        self.failed_trials += failed_trials
        self.first_seen_at = min(self.first_seen_at, first)
        if last >= self.last_seen_at:
            self.last_seen_at, self.last_called = last, called


class TrialWriter:
    """Saves batches of trials inside one transaction; `finish` must be called before it commits."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._identifier = Identifier()
        self._tallies: dict[str, dict[str, _Tally]] = {name: {} for name in _DIMENSIONS}
        self._newest: dict[str, tuple[datetime, str]] = {}
        self._run_parts = RunParts()

    def save(self, trials: Sequence[Trial]) -> tuple[int, int]:
        """Insert the trials that are not stored yet: how many were new, how many known.

        Raises ConflictError for a trial whose id is stored with different content.
        """
        stored = self._stored_hashes([trial.trial_id for trial in trials])
        new: dict[str, Prepared] = {}
        for entry in prepare(trials, self._identifier):
            trial_id = entry.trial.trial_id
            known = stored.get(trial_id)
            if known is None:
                stored[trial_id] = entry.content
                new[trial_id] = entry
            elif known != entry.content:
                self._require_equal(whole(entry.trial), new.get(trial_id))
        self._insert(list(new.values()))
        return len(new), len(trials) - len(new)

    def finish(self) -> None:
        """Write what the inserted trials change elsewhere: tallies, newest runs, parts, the data version."""
        for name, tallies in self._tallies.items():
            if tallies:
                self._connection.execute(_tally_update(name), _tally_parameters(tallies))
        if self._newest:
            rows = [
                {"series_id": series_id, "run_id": run_id, "started_at": started_at}
                for series_id, (started_at, run_id) in self._newest.items()
            ]
            self._connection.execute(_newest_upsert(self._connection), rows)
        self._run_parts.write(self._connection)
        bump_data_version(self._connection)

    def _stored_hashes(self, trial_ids: list[str]) -> dict[str, str]:
        found = self._connection.execute(_STORED_HASHES, {"trial_ids": trial_ids})
        return {row.trial_id: row.content_hash for row in found}

    def _require_equal(self, trial: Trial, earlier: Prepared | None) -> None:
        """Raise ConflictError unless the trial with this id is the same; only then may hashes differ."""
        other = whole(earlier.trial) if earlier else next(load_trials(self._connection, [trial.trial_id]))
        fields = [name for name in Trial.model_fields if getattr(trial, name) != getattr(other, name)]
        if fields:
            raise ConflictError(
                f"Trial {trial.trial_id} of run {trial.run_id} is known already, from run {other.run_id}, "
                f"with different content in {', '.join(fields).replace('schema_', 'schema')}.",
                "Nothing was changed. Give the second one an id of its own if it is another trial.",
            )

    def _insert(self, new: list[Prepared]) -> None:
        if not new:
            return
        groups = _grouped(new)
        self._insert_dimensions(groups)
        insert_columns(self._connection, TRIAL, trial_columns(new))
        insert_columns(self._connection, TRIAL_DETAIL, detail_columns(new), as_stored=DETAIL_PARTS)
        if any(entry.arrays for entry in new):
            insert_columns(self._connection, TRIAL_SAMPLES, sample_columns(new))
        self._count(groups)

    def _insert_dimensions(self, groups: Iterable[list[Prepared]]) -> None:
        missing: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in _DIMENSIONS}
        for first, *_ in groups:
            for (name, rows), key in zip(missing.items(), _keys(first), strict=True):
                if key not in self._tallies[name] and key not in rows:
                    rows[key] = dimension_row(name, first.trial, first.ids)
        for name, rows in missing.items():
            if rows:
                statement = upsert(self._connection, _DIMENSIONS[name]).on_conflict_do_nothing(
                    index_elements=[f"{name}_id"]
                )
                self._connection.execute(statement, list(rows.values()))

    def _count(self, groups: Iterable[list[Prepared]]) -> None:
        for group in groups:
            trials = [entry.trial for entry in group]
            starts = [trial.started_at for trial in trials]
            first, last = min(starts), max(starts)
            # The one that began last, of several the one that came last.
            newest = trials[-1 - starts[::-1].index(last)]
            failed = sum([trial.status is Status.FAILED for trial in trials])
            ids, run_id = group[0].ids, newest.run_id
            for (name, tallies), key in zip(self._tallies.items(), _keys(group[0]), strict=True):
                called = _called(name, newest) if name in _LAST_CALLED else None
                known = tallies.get(key)
                if known is None:
                    tallies[key] = _Tally(len(group), failed, first, last, called)
                else:
                    known.add(len(group), failed, first, last, called)
            self._run_parts.add((run_id, ids.machine, ids.build), len(group), first, last)
            results = [trial.started_at for trial in trials if _is_result(trial)]
            if results:
                told = (max(results), run_id)
                self._newest[ids.series] = max(self._newest.get(ids.series, told), told)


def _grouped(new: Iterable[Prepared]) -> list[list[Prepared]]:
    """The trials of one case and run together: they count in the same rows."""
    groups: dict[tuple[CaseIds, str], list[Prepared]] = defaultdict(list)
    for entry in new:
        groups[entry.ids, entry.trial.run_id].append(entry)
    return list(groups.values())


def _keys(entry: Prepared) -> tuple[str, ...]:
    """The ids of the rows of `_DIMENSIONS` that a trial refers to."""
    ids = entry.ids
    return ids.machine, ids.build, ids.workload, ids.strategy, ids.series, entry.trial.run_id


def _called(name: str, trial: Trial) -> str | None:
    return trial.machine.name if name == "machine" else trial.build.label


def _is_result(trial: Trial) -> bool:
    """A failure is a result; a trial that a person cancelled says nothing about its case."""
    return trial.failure is None or trial.failure.kind is not FailureKind.CANCELLED


def _tally_update(name: str) -> Update:
    table = _DIMENSIONS[name]
    moment = TRIAL.c.started_at.type
    first: BindParameter[Any] = bindparam("first", type_=moment)
    last: BindParameter[Any] = bindparam("last", type_=moment)
    columns = table.c
    values: dict[str, Any] = {
        "trials": columns.trials + bindparam("more"),
        "failed_trials": columns.failed_trials + bindparam("more_failed"),
        "first_seen_at": case((columns.first_seen_at < first, columns.first_seen_at), else_=first),
        "last_seen_at": case((columns.last_seen_at > last, columns.last_seen_at), else_=last),
    }
    if name in _LAST_CALLED:
        called = columns[_LAST_CALLED[name]]
        values[called.name] = case((columns.last_seen_at > last, called), else_=bindparam("called"))
    return update(table).where(columns[f"{name}_id"] == bindparam("key")).values(values)


def _tally_parameters(tallies: dict[str, _Tally]) -> list[dict[str, Any]]:
    return [
        {
            "key": key,
            "more": tally.trials,
            "more_failed": tally.failed_trials,
            "first": tally.first_seen_at,
            "last": tally.last_seen_at,
            "called": tally.last_called,
        }
        for key, tally in tallies.items()
    ]


def _newest_upsert(connection: Connection) -> sqlite.Insert | postgresql.Insert:
    """Replace a series' newest run by a newer one, in whatever order runs arrive."""
    statement = upsert(connection, LATEST)
    offered = statement.excluded
    newer = or_(
        offered.started_at > LATEST.c.started_at,
        and_(offered.started_at == LATEST.c.started_at, offered.run_id > LATEST.c.run_id),
    )
    return statement.on_conflict_do_update(
        index_elements=["series_id"],
        set_={"run_id": offered.run_id, "started_at": offered.started_at},
        where=newer,
    )
