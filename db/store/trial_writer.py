"""Writing trials in one transaction: what is new is inserted, what follows from it is kept up to date."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
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

from db.engine.moments import latest_moment, wrong_moment
from db.errors import ConflictError, RecordError, one_line
from db.queries.records import load_trials
from db.records.trial import FailureKind, SourceKind, Status, Trial
from db.store.insert import insert_columns
from db.store.trial_rows import DIMENSIONS, Batch
from db.tables.run_parts import RUN_PART
from db.tables.trials import (
    CONDITIONS,
    DATA_VERSION,
    DETAIL_PARTS,
    LATEST,
    TRIAL,
    TRIAL_DETAIL,
    TRIAL_SAMPLES,
)

# What to say of a trial whose id is stored with other content.


def conflict(trial: Trial, stored: Trial) -> ConflictError | None:
    """The error for `trial`, whose id `stored` has already; None where both are the same."""
    fields = [name for name in Trial.model_fields if getattr(trial, name) != getattr(stored, name)]
    if not fields:
        return None
    if trial.source.kind is SourceKind.IMPORTED and stored.source.kind is SourceKind.IMPORTED:
        return _of_imports(trial, stored, fields)
    return ConflictError(
        f"Trial {trial.trial_id} of run {trial.run_id} is known already, from run {stored.run_id}, "
        f"with different content in {_listed(fields)}.",
        "Nothing was changed. Give the second one an id of its own if it is another trial.",
    )


def _of_imports(trial: Trial, stored: Trial, fields: list[str]) -> ConflictError:
    """The id of an import follows from what its file says, so that nobody can give it another one."""
    subject = f"{one_line(stored.workload.name)} with {one_line(stored.strategy.name)}"
    names = _names(stored)
    changed = [name for name, value in _names(trial).items() if value != names[name]]
    if changed and _renamed(trial, stored) == stored:
        changes = " and ".join(f"{name} {_shown(names[name])}" for name in changed)
        return ConflictError(
            f"{subject} was imported before, with {changes}.",
            f"Nothing was changed: it is stored already. Give {_options(changed)} as before, or leave it.",
        )
    return ConflictError(
        f"{subject} was imported before, with different content in {_listed(fields)} "
        f"(trial {trial.trial_id}).",
        "Nothing was changed. An earlier import had half of the pair, or read the file differently. "
        "Import the files into a new database.",
    )


def _names(trial: Trial) -> dict[str, str | None]:
    """What an import is called: no part of its id."""
    return {"machine": trial.machine.name, "label": trial.build.label or trial.label}


def _renamed(trial: Trial, stored: Trial) -> Trial:
    """`trial` under the names of `stored`."""
    names = {
        "label": stored.label,
        "machine": trial.machine.model_copy(update={"name": stored.machine.name}),
        "build": trial.build.model_copy(update={"label": stored.build.label}),
    }
    return trial.model_copy(update=names)


def _shown(name: str | None) -> str:
    return "not named" if name is None else one_line(name)


def _options(names: list[str]) -> str:
    return " and ".join(f"--{name}" for name in names)


def _listed(fields: list[str]) -> str:
    return ", ".join(fields).replace("schema_", "schema")


# What a dimension was last called, and the column of a trial that says it.
_LAST_CALLED = {"machine": ("name", "machine_name"), "build": ("label", "build_label")}
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
    cancelled_trials: int
    first_seen_at: datetime
    last_seen_at: datetime
    last_called: str | None

    def add(self, more: _Tally) -> None:
        """Count more; of two that were seen last at one moment the one that came later names the row."""
        self.trials += more.trials
        self.failed_trials += more.failed_trials
        self.cancelled_trials += more.cancelled_trials
        self.first_seen_at = min(self.first_seen_at, more.first_seen_at)
        if more.last_seen_at >= self.last_seen_at:
            self.last_seen_at, self.last_called = more.last_seen_at, more.last_called


class TrialWriter:
    """Saves batches of trials inside one transaction; `finish` must be called before it commits."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._tallies: dict[str, dict[str, _Tally]] = {name: {} for name in DIMENSIONS}
        self._newest: dict[str, tuple[datetime, str]] = {}
        self._run_parts: dict[tuple[str, str, str], tuple[int, datetime, datetime]] = {}
        self._latest_moment = latest_moment(connection)

    def save_all(self, batches: Iterable[Batch]) -> tuple[int, int]:
        """As `save`, of one batch after the other."""
        new = known = 0
        for batch in batches:
            added, repeated = self.save(batch)
            new, known = new + added, known + repeated
        return new, known

    def save(self, batch: Batch) -> tuple[int, int]:
        """Insert the trials that are not stored yet: how many were new, how many known.

        Raises ConflictError for a trial whose id is stored with different content, RecordError for a new one
        of a moment at which nothing can have been measured.
        """
        trial_ids, contents = batch.of_trials("trial_id"), batch.of_trials("content_hash")
        rows = self._connection.execute(_STORED_HASHES, {"trial_ids": list(trial_ids)})
        stored: dict[str, str] = {row.trial_id: row.content_hash for row in rows}
        new, doubtful = [], []
        for place, (trial_id, content) in enumerate(zip(trial_ids, contents, strict=True)):
            known = stored.get(trial_id)
            if known is None:
                stored[trial_id] = content
                new.append(place)
            elif known != content:
                doubtful.append(place)
        if new:
            self._require_moments(batch, trial_ids, new)
            self._insert(batch if len(new) == len(batch) else batch.only(new))
        for place in doubtful:
            # Hashes of equal trials may differ, too.
            trial = batch.records[place]
            error = conflict(trial, next(load_trials(self._connection, [trial.trial_id])))
            if error is not None:
                raise error
        return len(new), len(batch) - len(new)

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
        if self._run_parts:
            names = ("run_id", "machine_id", "build_id", "trials", "first_seen_at", "last_seen_at")
            parts = [dict(zip(names, (*key, *added), strict=True)) for key, added in self._run_parts.items()]
            self._connection.execute(_run_parts_upsert(self._connection), parts)
        bump_data_version(self._connection)

    def _require_moments(self, batch: Batch, trial_ids: Sequence[str], places: Sequence[int]) -> None:
        started_at, ended_at = batch.of_trials("started_at"), batch.of_trials("ended_at")
        for place in places:
            wrong = wrong_moment(started_at[place], ended_at[place], self._latest_moment)
            if wrong is not None:
                raise RecordError(
                    f"Trial {trial_ids[place]} {wrong}.",
                    "Correct the record, or the clock of the host that measured it.",
                )

    def _insert(self, batch: Batch) -> None:
        # Rows of dimensions that a known trial told are stored since it is.
        for name, table in {**DIMENSIONS, CONDITIONS.name: CONDITIONS}.items():
            if rows := batch.dimensions.get(name):
                statement = upsert(self._connection, table).on_conflict_do_nothing(
                    index_elements=[f"{name}_id"]
                )
                self._connection.execute(statement, rows)
        for table in (TRIAL, TRIAL_DETAIL, TRIAL_SAMPLES):
            columns = batch.columns[table.name]
            if columns["trial_id"]:
                insert_columns(self._connection, table, columns, as_stored=DETAIL_PARTS)
        self._count(batch)

    def _count(self, batch: Batch) -> None:
        started_at = batch.of_trials("started_at")
        statuses, kinds = batch.of_trials("status"), batch.of_trials("failure_kind")
        called = {name: batch.of_trials(column) for name, (_, column) in _LAST_CALLED.items()}
        for alike in batch.cases:
            starts = [started_at[place] for place in alike.places]
            first, last = min(starts), max(starts)
            # The one that began last, of several the one that came last.
            newest = alike.places[-1 - starts[::-1].index(last)]
            cancelled = [kinds[place] for place in alike.places].count(FailureKind.CANCELLED)
            failed = [statuses[place] for place in alike.places].count(Status.FAILED) - cancelled
            for (name, tallies), key in zip(self._tallies.items(), alike.keys, strict=True):
                known = tallies.get(key)
                last_called = called[name][newest] if name in called else None
                added = _Tally(len(starts), failed, cancelled, first, last, last_called)
                if known is None:
                    tallies[key] = added
                else:
                    known.add(added)
            ids, run_id = alike.ids, alike.run_id
            part = run_id, ids.machine, ids.build
            so_far, earliest, latest = self._run_parts.get(part, (0, first, last))
            self._run_parts[part] = (so_far + len(starts), min(earliest, first), max(latest, last))
            # A failure is a result; a trial that a person cancelled says nothing about its case.
            results = [
                start
                for start, place in zip(starts, alike.places, strict=True)
                if kinds[place] != FailureKind.CANCELLED
            ]
            if results:
                newest_result = (max(results), run_id)
                self._newest[ids.series] = max(self._newest.get(ids.series, newest_result), newest_result)


def _tally_update(name: str) -> Update:
    table = DIMENSIONS[name]
    moment = TRIAL.c.started_at.type
    first: BindParameter[Any] = bindparam("first", type_=moment)
    last: BindParameter[Any] = bindparam("last", type_=moment)
    columns = table.c
    values: dict[str, Any] = {
        "trials": columns.trials + bindparam("more"),
        "failed_trials": columns.failed_trials + bindparam("more_failed"),
        "cancelled_trials": columns.cancelled_trials + bindparam("more_cancelled"),
        "first_seen_at": _earlier(columns.first_seen_at, first),
        "last_seen_at": _later(columns.last_seen_at, last),
    }
    if name in _LAST_CALLED:
        called = columns[_LAST_CALLED[name][0]]
        values[called.name] = case((columns.last_seen_at > last, called), else_=bindparam("called"))
    return update(table).where(columns[f"{name}_id"] == bindparam("key")).values(values)


def _tally_parameters(tallies: dict[str, _Tally]) -> list[dict[str, Any]]:
    return [
        {
            "key": key,
            "more": tally.trials,
            "more_failed": tally.failed_trials,
            "more_cancelled": tally.cancelled_trials,
            "first": tally.first_seen_at,
            "last": tally.last_seen_at,
            "called": tally.last_called,
        }
        for key, tally in tallies.items()
    ]


def _run_parts_upsert(connection: Connection) -> sqlite.Insert | postgresql.Insert:
    """Add trials to what a run, a machine and a build have in common."""
    statement = upsert(connection, RUN_PART)
    offered, stored = statement.excluded, RUN_PART.c
    return statement.on_conflict_do_update(
        index_elements=["run_id", "machine_id", "build_id"],
        set_={
            "trials": stored.trials + offered.trials,
            "first_seen_at": _earlier(stored.first_seen_at, offered.first_seen_at),
            "last_seen_at": _later(stored.last_seen_at, offered.last_seen_at),
        },
    )


def _earlier(stored: ColumnElement[Any], new: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((stored < new, stored), else_=new)


def _later(stored: ColumnElement[Any], new: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((stored > new, stored), else_=new)


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
