"""Writing trials in one transaction: what is new is inserted, what follows from it is kept up to date.

Keeping up to date what the trials of each case in each run come to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Update,
    and_,
    bindparam,
    case,
    delete,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from compilewatch.db.columns.metrics import EDITION
from compilewatch.db.engine.repository import (
    bump_data_version,
    latest_moment,
    lock_data_version,
    upsert,
    wrong_moment,
)
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import (
    DATA_VERSION,
    LATEST,
    RUN_CASE,
    RUN_PART,
    TRIAL,
    TRIAL_DETAIL,
    TRIAL_SAMPLES,
)
from compilewatch.db.errors import ConflictError, RecordError, one_line
from compilewatch.db.queries.history_points import (
    WorkloadOfRun,
    is_current,
    regions,
    summed_up,
    workloads_of_runs,
)
from compilewatch.db.queries.records import load_trials
from compilewatch.db.records.trial import FailureKind, SourceKind, Status, Trial
from compilewatch.db.store.trial_rows import COUNTED, DIMENSIONS, TrialRows, dimension_row, trial_rows


def sum_up(connection: Connection, touched: Collection[WorkloadOfRun]) -> None:
    """Make the rows of `touched` anew of their trials, inside the caller's transaction; the whole table where
    it is of another edition.
    """
    if not is_current(connection):
        RUN_CASE.drop(connection)
        RUN_CASE.create(connection)
        connection.execute(update(DATA_VERSION).values(run_case_edition=EDITION))
        touched = workloads_of_runs(connection)
    for runs, series in regions(touched):
        connection.execute(
            delete(RUN_CASE).where(RUN_CASE.c.run_id.in_(runs), RUN_CASE.c.series_id.in_(series))
        )
        if rows := summed_up(connection, runs, series):
            connection.execute(insert(RUN_CASE), rows)


def bring_up(db: Database) -> None:
    """Make the table anew where it is of another edition; else nothing is written."""
    with db.read() as connection:
        current = is_current(connection)
    if not current:
        rebuild(db)


def rebuild(db: Database) -> None:
    """Make the table anew."""
    with db.write() as connection:
        lock_data_version(connection)
        connection.execute(update(DATA_VERSION).values(run_case_edition=0))
        sum_up(connection, [])
        bump_data_version(connection)


TRIALS_OF_A_BATCH = 1000
_STORED_HASHES = select(TRIAL.c.trial_id, TRIAL.c.content_hash).where(
    TRIAL.c.trial_id.in_(bindparam("trial_ids", expanding=True))
)


class TrialWriter:
    """Saves trials inside one transaction; `finish` must be called before it commits."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._tallies = Tallies()
        self._touched: set[WorkloadOfRun] = set()
        self._written: set[tuple[str, str]] = set()
        self._latest_moment = latest_moment(connection)

    def save_all(self, trials: Iterable[Trial], batch: int = TRIALS_OF_A_BATCH) -> tuple[int, int]:
        """As `save`, of `batch` trials after the other."""
        new = known = 0
        remaining = iter(trials)
        while some := list(islice(remaining, batch)):
            added = self.save(some)
            new, known = new + added, known + len(some) - added
        return new, known

    def save(self, trials: Sequence[Trial]) -> int:
        """Insert the trials that are not stored yet: how many these are.

        Raises ConflictError for a trial whose id is stored with different content, RecordError for a new one
        of a moment at which nothing can have been measured.
        """
        rows = [trial_rows(trial) for trial in trials]
        parameters = {"trial_ids": [trial.trial_id for trial in trials]}
        stored: dict[str, str] = {
            row.trial_id: row.content_hash for row in self._connection.execute(_STORED_HASHES, parameters)
        }
        new, doubtful = [], []
        for each in rows:
            content, trial_id = each.row["content_hash"], each.trial.trial_id
            if trial_id not in stored:
                stored[trial_id] = content
                new.append(each)
            elif stored[trial_id] != content:
                doubtful.append(each.trial)
        self._insert(new)
        for trial in doubtful:
            # Hashes of equal trials may differ, too.
            error = conflict(trial, next(load_trials(self._connection, [trial.trial_id])))
            if error is not None:
                raise error
        return len(new)

    def finish(self) -> None:
        """Write what follows from the inserted trials, and the next data version."""
        self._tallies.write(self._connection)
        sum_up(self._connection, self._touched)
        bump_data_version(self._connection)

    def _insert(self, new: Sequence[TrialRows]) -> None:
        dimensions: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for each in new:
            self._require_moment(each.trial)
            for name, key in zip(DIMENSIONS, each.keys, strict=True):
                if (name, key) not in self._written:
                    self._written.add((name, key))
                    dimensions[name].append(dimension_row(name, each.trial, each.keys))
            self._tallies.add(each)
            self._touched.add((each.keys.run, each.keys.workload))
        for name, table in DIMENSIONS.items():
            if rows := dimensions[name]:
                statement = upsert(self._connection, table)
                self._connection.execute(
                    statement.on_conflict_do_nothing(index_elements=[f"{name}_id"]), rows
                )
        for table, of_table in (
            (TRIAL, [each.row for each in new]),
            (TRIAL_DETAIL, [each.details for each in new]),
            (TRIAL_SAMPLES, [array for each in new for array in each.arrays]),
        ):
            if of_table:
                self._connection.execute(insert(table), of_table)

    def _require_moment(self, trial: Trial) -> None:
        wrong = wrong_moment(trial.started_at, trial.ended_at, self._latest_moment)
        if wrong is not None:
            raise RecordError(
                f"Trial {trial.trial_id} {wrong}.",
                "Correct the record, or the clock of the host that measured it.",
            )


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
    machine = trial.machine.model_copy(update={"name": stored.machine.name})
    if trial.model_copy(update={"machine": machine}) == stored:
        return ConflictError(
            f"{subject} was imported before, with machine {one_line(stored.machine.name)}.",
            "Nothing was changed: it is stored already. Give --machine as before, or leave it.",
        )
    return ConflictError(
        f"{subject} was imported before, with different content in {_listed(fields)} "
        f"(trial {trial.trial_id}).",
        "Nothing was changed. An earlier import had half of the pair, or read the file differently. "
        "Give --replace to have the trials of this one instead.",
    )


def _listed(fields: list[str]) -> str:
    return ", ".join(fields).replace("schema_", "schema")


# What a dimension was last called, and the column of a trial that says it.
_LAST_CALLED = {"machine": ("name", "machine_name"), "build": ("label", "build_label")}


@dataclass
class _Tally:
    """What a transaction adds to one row of a dimension: the parameters of its `_tally_update`."""

    more: int
    more_failed: int
    more_cancelled: int
    first: datetime
    last: datetime
    called: str | None


class Tallies:
    """Counts the new trials of one transaction; `write` stores what they change."""

    def __init__(self) -> None:
        self._tallies: dict[str, dict[str, _Tally]] = {name: {} for name in COUNTED}
        self._newest: dict[str, tuple[datetime, str]] = {}
        self._run_parts: dict[tuple[str, str, str], tuple[int, datetime, datetime]] = {}

    def add(self, new: TrialRows) -> None:
        """Count one trial. Of two that were seen last at one moment the one that came later names its machine
        and build.
        """
        began: datetime = new.row["started_at"]
        cancelled = new.row["failure_kind"] == FailureKind.CANCELLED
        failed = new.row["status"] == Status.FAILED and not cancelled
        for name, tallies in self._tallies.items():
            key = getattr(new.keys, name)
            called = new.row[_LAST_CALLED[name][1]] if name in _LAST_CALLED else None
            known = tallies.setdefault(key, _Tally(0, 0, 0, began, began, called))
            known.more += 1
            known.more_failed += failed
            known.more_cancelled += cancelled
            known.first = min(known.first, began)
            if began >= known.last:
                known.last, known.called = began, called
        part = new.keys.run, new.keys.machine, new.keys.build
        so_far, earliest, latest = self._run_parts.get(part, (0, began, began))
        self._run_parts[part] = so_far + 1, min(earliest, began), max(latest, began)
        # A failure is a result; a trial that a person cancelled says nothing about its case.
        if not cancelled:
            newest = began, new.keys.run
            self._newest[new.keys.series] = max(self._newest.get(new.keys.series, newest), newest)

    def write(self, connection: Connection) -> None:
        """Add to the tallies, newest runs and parts that are stored."""
        for name, tallies in self._tallies.items():
            if tallies:
                added = [{"key": key, **vars(tally)} for key, tally in tallies.items()]
                connection.execute(_tally_update(name), added)
        if self._newest:
            rows = [
                {"series_id": series_id, "run_id": run_id, "started_at": started_at}
                for series_id, (started_at, run_id) in self._newest.items()
            ]
            connection.execute(_newest_upsert(connection), rows)
        if self._run_parts:
            names = ("run_id", "machine_id", "build_id", "trials", "first_seen_at", "last_seen_at")
            parts = [dict(zip(names, (*key, *more), strict=True)) for key, more in self._run_parts.items()]
            connection.execute(_run_parts_upsert(connection), parts)


@cache
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
