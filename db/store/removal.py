"""Taking trials out, the only write that deletes what was measured; what an import does to those that are
stored: it adds, replaces or takes out; and forgetting old samples, of which plain arithmetic stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    Table,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from compilewatch.db.engine.repository import bump_data_version, lock_data_version
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import (
    BUILD,
    KEYS_OF_TRIALS,
    LATEST,
    MACHINE,
    METADATA,
    RUN,
    RUN_PART,
    SERIES,
    TRIAL,
    TRIAL_DETAIL,
    TRIAL_SAMPLES,
)
from compilewatch.db.errors import NotFoundError, one_line
from compilewatch.db.queries.history_points import WorkloadOfRun
from compilewatch.db.records.trial import FailureKind, SourceKind, Status, Trial
from compilewatch.db.store.trial_rows import trial_rows
from compilewatch.db.store.trial_writer import sum_up
from compilewatch.db.store.trials import write_trials
from compilewatch.db.units import plural

_CASES = TRIAL.join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
# More ids than this a statement of SQLite or PostgreSQL does not take.
_IDS_AT_ONCE = 10_000
# What a dimension was last called, and what of a trial says it.
_NAMES: dict[Table, tuple[Column[Any], Column[Any]]] = {
    MACHINE: (MACHINE.c.name, TRIAL.c.machine_name),
    BUILD: (BUILD.c.label, TRIAL.c.build_label),
}


def remove_trials(db: Database, trial_ids: Collection[str]) -> int:
    """Take out trials with their samples and all that followed from them: how many, all or none.

    What has no trial left goes too, unless it was announced or something else refers to it. Raises
    NotFoundError where an id is not stored; nothing is changed then.
    """
    wanted = list(dict.fromkeys(trial_ids))
    with db.write() as connection:
        lock_data_version(connection)
        _require_stored(connection, wanted)
        _remove(connection, wanted)
    return len(wanted)


def _remove(connection: Connection, wanted: list[str]) -> None:
    touched = {table.name: _keys(connection, key, wanted) for table, key in KEYS_OF_TRIALS.items()}
    workloads = _workloads_of_runs(connection, wanted)
    for some in _batches(wanted):
        for child in (TRIAL_SAMPLES, TRIAL_DETAIL, TRIAL):
            connection.execute(delete(child).where(child.c.trial_id.in_(some)))
    _set_latest(connection, touched[SERIES.name])
    _set_run_parts(connection, touched[RUN.name])
    sum_up(connection, workloads)
    for table, key in KEYS_OF_TRIALS.items():
        for row_id in touched[table.name]:
            _count(connection, table, key, row_id)
            if table in _NAMES:
                called, calls = _NAMES[table]
                # By the name that the newest trial left gives it.
                names = select(calls).select_from(_CASES).where(key == row_id)
                newest = connection.execute(names.order_by(TRIAL.c.started_at.desc()).limit(1)).first()
                if newest is not None:
                    this = update(table).where(table.c[key.name] == row_id)
                    connection.execute(this.values({called.name: newest[0]}))
        _delete_unused(connection, table, touched[table.name])
    bump_data_version(connection)


class Writing(StrEnum):
    """What becomes of the trials of a file: added to what is stored, put in place of what an earlier import
    brought of the same runs and cases, or taken out again.
    """

    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"


Write = Callable[[Connection, Iterable[Trial]], tuple[int, int, int]]
"""Inside the caller's transaction: how many trials were new, known, and taken out."""


def writing_of(writing: Writing) -> Write:
    """What writes the files of one import, one after the other."""
    if writing is Writing.REPLACE:
        return partial(_replace_imported, brought=set())
    return _remove_imported if writing is Writing.REMOVE else _add


def _add(connection: Connection, trials: Iterable[Trial]) -> tuple[int, int, int]:
    return *write_trials(connection, trials), 0


def _remove_imported(connection: Connection, trials: Iterable[Trial]) -> tuple[int, int, int]:
    """Take out those of `trials` that are stored as imported."""
    lock_data_version(connection)
    ids = list(dict.fromkeys(trial.trial_id for trial in trials))
    stored = _stored(connection, ids, TRIAL.c.source_kind == SourceKind.IMPORTED)
    if stored:
        _remove(connection, stored)
    return 0, 0, len(stored)


def _replace_imported(
    connection: Connection, trials: Iterable[Trial], brought: set[str]
) -> tuple[int, int, int]:
    """Store `trials` in place of the imported ones of the same runs and cases.

    `brought` are ids that stay, of what other files of the same import hold; those of `trials` are added.
    """
    lock_data_version(connection)
    rows = [trial_rows(trial) for trial in trials]
    contents = {each.trial.trial_id: each.row["content_hash"] for each in rows}
    cases = {(each.row["run_id"], each.row["series_id"]) for each in rows}
    of_runs = select(TRIAL.c.trial_id, TRIAL.c.run_id, TRIAL.c.series_id, TRIAL.c.content_hash)
    imported = of_runs.where(TRIAL.c.source_kind == SourceKind.IMPORTED)
    stale = [
        row.trial_id
        for some in _batches(sorted({run for run, _ in cases}))
        for row in connection.execute(imported.where(TRIAL.c.run_id.in_(some)))
        if (row.run_id, row.series_id) in cases
        and row.trial_id not in brought
        and contents.get(row.trial_id) != row.content_hash
    ]
    brought.update(contents)
    if stale:
        _remove(connection, stale)
    return *write_trials(connection, (each.trial for each in rows)), len(stale)


def require_stored(db: Database, trial_ids: Collection[str]) -> None:
    """Raises NotFoundError where an id is not stored."""
    with db.read() as connection:
        _require_stored(connection, list(dict.fromkeys(trial_ids)))


def _require_stored(connection: Connection, wanted: list[str]) -> None:
    stored = set(_stored(connection, wanted))
    unknown = [trial_id for trial_id in wanted if trial_id not in stored]
    if unknown:
        raise NotFoundError(
            f"{plural(len(unknown), 'trial')} not stored: {one_line(', '.join(unknown[:3]))}.",
            "Nothing was taken out. See `compilewatch list trials`.",
        )


def _stored(connection: Connection, ids: list[str], *conditions: ColumnElement[bool]) -> list[str]:
    found = select(TRIAL.c.trial_id).where(*conditions)
    return [
        trial_id
        for some in _batches(ids)
        for trial_id in connection.scalars(found.where(TRIAL.c.trial_id.in_(some)))
    ]


def _keys(connection: Connection, key: Column[Any], trial_ids: list[str]) -> list[str]:
    keys = select(key).select_from(_CASES).distinct()
    found = (connection.scalars(keys.where(TRIAL.c.trial_id.in_(some))) for some in _batches(trial_ids))
    return list(dict.fromkeys(each for some in found for each in some))


def _workloads_of_runs(connection: Connection, trial_ids: list[str]) -> list[WorkloadOfRun]:
    pairs = select(TRIAL.c.run_id, SERIES.c.workload_id).select_from(_CASES).distinct()
    found = (connection.execute(pairs.where(TRIAL.c.trial_id.in_(some))) for some in _batches(trial_ids))
    return list(dict.fromkeys((row.run_id, row.workload_id) for some in found for row in some))


def _batches(ids: list[str]) -> Iterator[list[str]]:
    return (ids[start : start + _IDS_AT_ONCE] for start in range(0, len(ids), _IDS_AT_ONCE))


def _set_latest(connection: Connection, series_ids: list[str]) -> None:
    """The newest run of each series, found again; cancelled trials make none."""
    connection.execute(delete(LATEST).where(LATEST.c.series_id.in_(series_ids)))
    counts = TRIAL.c.failure_kind.is_distinct_from(FailureKind.CANCELLED)
    for series_id in series_ids:
        newest = (
            select(TRIAL.c.series_id, TRIAL.c.run_id, TRIAL.c.started_at)
            .where(TRIAL.c.series_id == series_id, counts)
            .order_by(TRIAL.c.started_at.desc(), TRIAL.c.run_id.desc())
            .limit(1)
        )
        connection.execute(insert(LATEST).from_select(["series_id", "run_id", "started_at"], newest))


def _set_run_parts(connection: Connection, run_ids: list[str]) -> None:
    connection.execute(delete(RUN_PART).where(RUN_PART.c.run_id.in_(run_ids)))
    parts = (TRIAL.c.run_id, SERIES.c.machine_id, TRIAL.c.build_id)
    began = TRIAL.c.started_at
    counted: Select[Any] = (
        select(*parts, func.count(), func.min(began), func.max(began))
        .select_from(_CASES)
        .where(TRIAL.c.run_id.in_(run_ids))
        .group_by(*parts)
    )
    names = ["run_id", "machine_id", "build_id", "trials", "first_seen_at", "last_seen_at"]
    connection.execute(insert(RUN_PART).from_select(names, counted))


def _count(connection: Connection, table: Table, key: Column[Any], row_id: str) -> None:
    began = TRIAL.c.started_at
    is_cancelled = TRIAL.c.failure_kind.is_not_distinct_from(FailureKind.CANCELLED)
    has_failed = (TRIAL.c.status == Status.FAILED) & ~is_cancelled
    failed, cancelled = (
        func.coalesce(func.sum(case((condition, 1), else_=0)), 0) for condition in (has_failed, is_cancelled)
    )
    columns = (func.count(), failed, cancelled, func.min(began), func.max(began))
    counts = connection.execute(select(*columns).select_from(_CASES).where(key == row_id)).one()
    names = ("trials", "failed_trials", "cancelled_trials", "first_seen_at", "last_seen_at")
    values = dict(zip(names, counts, strict=True))
    connection.execute(update(table).where(table.c[key.name] == row_id).values(**values))


def _delete_unused(connection: Connection, table: Table, row_ids: list[str]) -> None:
    (key,) = table.primary_key.columns
    unused = [table.c.trials == 0]
    if table is RUN:
        unused.append(RUN.c.status.is_(None))
    for other in METADATA.sorted_tables:
        mine = [each.parent for each in other.foreign_keys if each.column is key]
        if mine:
            refers = or_(*(column == key for column in mine))
            unused.append(~select(other).where(refers).exists())
    connection.execute(delete(table).where(key.in_(row_ids), *unused))


_BATCH = 500


def compact_samples(
    db: Database, before: datetime, *, should_stop: Callable[[], bool] = lambda: False
) -> int:
    """Delete the samples of trials begun before `before`: how many trials lost theirs.

    Medians, percentiles and counts stay in the trial's row, and its record gets them as a `summary`, as an
    imported result has one. A trial keeps the content hash of the record that was saved: that record is
    known when it comes again. One transaction per batch, so that others can write in between.
    """
    compacted = 0
    while not should_stop():
        with db.write() as connection:
            lock_data_version(connection)
            rows = _with_samples(connection, before)
            if not rows:
                break
            for row in rows:
                if row["summary"] is None:
                    this = TRIAL_DETAIL.c.trial_id == row["trial_id"]
                    connection.execute(update(TRIAL_DETAIL).where(this).values(summary=_summary(row)))
            samples = TRIAL_SAMPLES.c.trial_id.in_([row["trial_id"] for row in rows])
            connection.execute(delete(TRIAL_SAMPLES).where(samples))
            bump_data_version(connection)
        compacted += len(rows)
    return compacted


def _with_samples(connection: Connection, before: datetime) -> list[RowMapping]:
    has_samples = (
        select(TRIAL_SAMPLES.c.trial_id).where(TRIAL_SAMPLES.c.trial_id == TRIAL.c.trial_id).exists()
    )
    columns = ("trial_id", "latency_ns", "control_latency_ns", "samples")
    statement = (
        select(*(TRIAL.c[name] for name in columns), TRIAL_DETAIL.c.summary)
        .join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)
        .where(TRIAL.c.started_at < before, has_samples)
        .order_by(TRIAL.c.started_at)
        .limit(_BATCH)
    )
    return list(connection.execute(statement).mappings())


def _summary(row: RowMapping) -> dict[str, int]:
    summary = {"latency_ns": row["latency_ns"], "control_latency_ns": row["control_latency_ns"]}
    whole = {**summary, "n": row["samples"]}
    return {name: round(value) for name, value in whole.items() if value is not None}
