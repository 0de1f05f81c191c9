"""What there is: machines, builds, workloads and runs, each with its counts.

Series, workloads and strategies of the trials that filters let through.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pandas as pd
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Select,
    Table,
    Text,
    and_,
    cast,
    exists,
    func,
    or_,
    select,
)

from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import BUILD, MACHINE, RUN, RUN_PART, SERIES, STRATEGY, TRIAL, WORKLOAD
from compilewatch.db.metrics.eligibility import is_canary
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.queries.selection import (
    CASES,
    Filters,
    matching,
    matching_series,
    matching_trials,
    plain,
    read_frame,
    selected,
)
from compilewatch.db.records.identity import stack_order
from compilewatch.db.records.requests import INTERRUPTED, INTERRUPTED_AFTER, RunStatus
from compilewatch.db.records.trial import SourceKind

# Which runs and builds were measured here, and which came from other tools.


def measured_runs(db: Database, build_id: str) -> tuple[str, ...]:
    """The runs that measured this build here, where imported results of it are stored too; else none."""
    of_build = select(RUN.c.run_id).where(
        RUN.c.run_id.in_(select(RUN_PART.c.run_id).where(RUN_PART.c.build_id == build_id))
    )
    with db.read() as connection:
        if connection.scalar(of_build.where(is_imported()).limit(1)) is None:
            return ()
        return tuple(connection.scalars(of_build.where(is_measured()).order_by(RUN.c.run_id)))


def is_measured() -> ColumnElement[bool]:
    """Whether the results of a row of `run` were measured, not imported.

    A run that was announced was measured; of any other one of its trials tells, found by the index on runs.
    """
    return or_(RUN.c.status.is_not(None), _source_kind() == SourceKind.MEASURED)


def is_whole() -> ColumnElement[bool]:
    """Whether a row of `run` is of one that came to its end, as far as anybody announced it."""
    return or_(RUN.c.status.is_(None), RUN.c.status == RunStatus.FINISHED)


def is_imported() -> ColumnElement[bool]:
    """Whether the results of a row of `run` come from another tool."""
    return and_(RUN.c.status.is_(None), _source_kind() == SourceKind.IMPORTED)


def _source_kind() -> ColumnElement[SourceKind]:
    return select(TRIAL.c.source_kind).where(TRIAL.c.run_id == RUN.c.run_id).limit(1).scalar_subquery()


_TALLIES = ("trials", "failed_trials", "cancelled_trials", "first_seen_at", "last_seen_at")
BEGAN = func.coalesce(RUN.c.started_at, RUN.c.first_seen_at)
"""When a run began; one that was not announced began with its first trial."""


def machines(db: Database) -> pd.DataFrame:
    """One row per machine, by name; `machine` is what it was last called."""
    frame = read_frame(db, _facet(MACHINE)).rename(columns={"name": "machine"})
    return frame.sort_values(["machine", "machine_id"], ignore_index=True)


def builds(db: Database, build_ids: Sequence[str] | None = None) -> pd.DataFrame:
    """One row per build (some or all), oldest version first; `build_label` is what it was last called."""
    of_these = [] if build_ids is None else [BUILD.c.build_id.in_(build_ids)]
    frame = read_frame(db, _facet(BUILD).where(*of_these)).rename(columns={"label": "build_label"})
    keys = [version_order(record) for record in row_dicts(frame)]
    return frame.take(sorted(range(len(frame)), key=keys.__getitem__)).reset_index(drop=True)


def build_rows(db: Database) -> list[dict[str, Any]]:
    """What each build consists of, oldest version first; None for what it does not state.

    As `builds` has it, without tallies and the way over a frame: pages ask for thousands after every write.
    """
    own = [name for name in BUILD.c.keys() if name not in (*_TALLIES, "label", "packages")]  # noqa: SIM118
    packages = cast(BUILD.c.packages, Text).label("packages")
    columns = [*selected(BUILD, *own, "first_seen_at", build_label="label"), packages]
    names = [str(column.key) for column in columns]
    with db.read() as connection:
        rows = [dict(zip(names, row, strict=True)) for row in connection.execute(select(*columns))]
    # Few builds have libraries of their own: those of others are read once.
    read = {text: json.loads(text) for text in {row["packages"] for row in rows} if text is not None}
    rows.sort(key=version_order)
    for row in rows:
        row["packages"] = read.get(row["packages"])
        del row["first_seen_at"]
    return rows


def workloads(db: Database) -> pd.DataFrame:
    """One row per workload (a version and size of a name), by name and then newest last."""
    names = {"name": "workload", "version": "workload_version"}
    frame = read_frame(db, _facet(WORKLOAD)).rename(columns=names)
    return frame.sort_values(["workload", "first_seen_at", "workload_id"], ignore_index=True)


def runs(db: Database, *, newest: int | None = None) -> pd.DataFrame:
    """One row per run, newest first; with `newest` at most that many.

    A run that was not announced (an imported one) began with its first trial and has no status; a running one
    that has been silent too long is "interrupted". `source` is "measured", or for imported results the format
    they came from.
    """
    statement = _facet(RUN).order_by(BEGAN.desc(), RUN.c.run_id.desc())
    frame = read_frame(db, statement.limit(newest))
    frame["started_at"] = frame["started_at"].fillna(frame["first_seen_at"])
    is_running = frame["status"] == RunStatus.RUNNING
    frame["status"] = frame["status"].mask(is_running & silent(frame, datetime.now(UTC)), INTERRUPTED)
    sources = _sources(db, None if newest is None else list(frame["run_id"]))
    kinds = [sources.get(run_id, SourceKind.MEASURED.value) for run_id in frame["run_id"]]
    frame["source"] = pd.Series(kinds, dtype="str")
    return frame.sort_values(["started_at", "run_id"], ascending=False, ignore_index=True)


def suites_of_runs(db: Database, run_ids: Sequence[str]) -> dict[str, str | None]:
    """Run id -> its suite."""
    statement = select(RUN.c.run_id, RUN.c.suite).where(RUN.c.run_id.in_(run_ids))
    return {row.run_id: row.suite for row in db.rows(statement)}


def runs_with_contents(db: Database) -> pd.DataFrame:
    """`runs` with what each measured (`workloads`), the trials of the machine's control series apart."""
    frame, contents = runs(db), _contents_of_runs(db)
    each = [contents.get(run_id, ([], 0)) for run_id in frame["run_id"]]
    return frame.assign(
        workloads=pd.Series([", ".join(names) for names, _ in each], dtype="str"),
        canaries=pd.Series([canaries for _, canaries in each], dtype="int64"),
    )


def _contents_of_runs(db: Database) -> dict[str, tuple[list[str], int]]:
    """Run id -> the workloads that it measured, by name, and how many of its trials are canaries."""
    statement = (
        select(TRIAL.c.run_id, WORKLOAD.c.name, func.count().label("trials"))
        .join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
        .join(WORKLOAD, WORKLOAD.c.workload_id == SERIES.c.workload_id)
        .group_by(TRIAL.c.run_id, WORKLOAD.c.name)
        .order_by(WORKLOAD.c.name)
    )
    contents: dict[str, tuple[list[str], int]] = {}
    for run_id, name, trials in db.rows(statement):
        names, canaries = contents.get(run_id, ([], 0))
        if is_canary(name):
            contents[run_id] = (names, canaries + trials)
        else:
            contents[run_id] = ([*names, name], canaries)
    return contents


def silent(runs: pd.DataFrame, now: datetime) -> pd.Series:
    """Of each run whether it stored nothing for `INTERRUPTED_AFTER`, by `last_seen_at` and `started_at`."""
    return runs["last_seen_at"].fillna(runs["started_at"]) < pd.Timestamp(now - INTERRUPTED_AFTER)


def _sources(db: Database, run_ids: list[str] | None) -> dict[str, str]:
    """Run id -> where its results were imported from, for runs that were not announced; of some, or all."""
    name = select(TRIAL.c.source_name).where(TRIAL.c.run_id == RUN.c.run_id).limit(1).scalar_subquery()
    of_these = [] if run_ids is None else [RUN.c.run_id.in_(run_ids)]
    rows = db.rows(select(RUN.c.run_id, name.label("name")).where(is_imported(), *of_these))
    return {row.run_id: row.name for row in rows}


def _facet(table: Table) -> Select[Any]:
    """All that `table` holds, its tallies last."""
    own = (each.name for each in table.c if each.name not in _TALLIES)
    return select(*selected(table, *own, *_TALLIES))


def version_order(row: Mapping[str, Any]) -> tuple[object, ...]:
    """By what builds are sorted.

    Torch decides, then what it stands on; builds that differ in none of that, by first seen.
    """
    return (*stack_order(row), row["first_seen_at"], row["build_id"])


_MEASURED = (
    select(RUN_PART.c.last_seen_at)
    .join(RUN)
    .where(RUN_PART.c.machine_id == MACHINE.c.machine_id, is_measured())
    .order_by(RUN_PART.c.last_seen_at.desc())
    .limit(1)
)
_MACHINES = select(
    *(MACHINE.c.machine_id, MACHINE.c.name, MACHINE.c.device_name, MACHINE.c.last_seen_at),
    _MEASURED.correlate(MACHINE).scalar_subquery(),
)
_WORKLOADS = select(WORKLOAD.c.name).distinct()
_STRATEGIES = select(STRATEGY.c.name).distinct()
_SUITES = select(RUN.c.suite).where(RUN.c.suite.is_not(None)).distinct().order_by(RUN.c.suite)
_RUNS = select(RUN.c.run_id, RUN.c.suite, BEGAN.label("began")).order_by(BEGAN.desc(), RUN.c.run_id.desc())
_OLDEST = select(func.min(BEGAN))


class _OfferedMachine(NamedTuple):
    """A machine as it was last called, when its newest trial began, and the newest that was not imported."""

    machine_id: str
    name: str
    device_name: str
    last_seen_at: datetime | None
    last_measured_at: datetime | None


class _OfferedRun(NamedTuple):
    """A run; one that was not announced began with its first trial."""

    run_id: str
    suite: str | None
    began: datetime | None


@dataclass(frozen=True)
class Offered:
    """What can be chosen beside builds: machines, workloads and suites by name, runs newest first."""

    machines: Sequence[_OfferedMachine]
    workloads: Sequence[str]
    strategies: Sequence[str]
    suites: Sequence[str]
    runs: Sequence[_OfferedRun]
    oldest_run_at: datetime | None


def offered(db: Database, *, newest_runs: int) -> Offered:
    """What there is to choose from, of the runs at most `newest_runs`."""
    with db.read() as connection:
        return Offered(
            machines=_machines(connection),
            workloads=sorted(connection.scalars(_WORKLOADS)),
            strategies=list(connection.scalars(_STRATEGIES)),
            suites=list(connection.scalars(_SUITES)),
            runs=[_OfferedRun(*row) for row in connection.execute(_RUNS.limit(newest_runs))],
            oldest_run_at=connection.scalar(_OLDEST),
        )


def machine_measured_last(db: Database) -> str | None:
    """The machine that pages show unless asked for another."""
    with db.read() as connection:
        newest = newest_machine(_machines(connection))
    return None if newest is None else newest.machine_id


def newest_machine(machines: Sequence[_OfferedMachine]) -> _OfferedMachine | None:
    """The one with the newest trial that was measured; where none was, with the newest."""
    return next(iter(newest_first(machines)), None)


def newest_first(machines: Sequence[_OfferedMachine]) -> list[_OfferedMachine]:
    """Those whose newest trial was measured before those that only have imported ones."""
    return sorted(machines, key=_recency, reverse=True)


def _recency(machine: _OfferedMachine) -> tuple[float, float, str, str]:
    measured, last_at = (
        -math.inf if moment is None else moment.timestamp()
        for moment in (machine.last_measured_at, machine.last_seen_at)
    )
    return measured, last_at, machine.name, machine.machine_id


def _machines(connection: Connection) -> list[_OfferedMachine]:
    machines = [_OfferedMachine(*row) for row in connection.execute(_MACHINES)]
    return sorted(machines, key=lambda machine: (machine.name, machine.machine_id))


def _of_series(column: Column[Any]) -> ColumnElement[Any]:
    """What a column says of any trial of the series."""
    return select(column).where(TRIAL.c.series_id == SERIES.c.series_id).limit(1).scalar_subquery()


def series_frame(db: Database, filters: Filters = Filters()) -> pd.DataFrame:  # noqa: B008
    """One row per series of the machines, workloads, strategies and tasks selected, by id.

    Other filters are about trials and leave a series as it is.
    """
    statement = select(
        *selected(SERIES, "series_id", "machine_id"),
        *selected(MACHINE, machine="name"),
        *selected(SERIES, "workload_id"),
        *selected(WORKLOAD, workload="name", workload_version="version", task="task"),
        *selected(SERIES, "strategy_id"),
        *selected(STRATEGY, strategy="name", cache="cache"),
        *selected(SERIES, "trials", "failed_trials", "first_seen_at", "last_seen_at"),
        # A series has one origin, as its workload has.
        *(plain(_of_series(TRIAL.c[name])).label(name) for name in ("source_kind", "source_name")),
    )
    matched = statement.select_from(CASES).where(*matching_series(filters))
    return read_frame(db, matched.order_by(SERIES.c.series_id))


def most_runs(db: Database, filters: Filters) -> str | None:
    """The machine that measured most runs of the trials that `filters` let through; None without any."""
    statement = (
        select(SERIES.c.machine_id)
        .join(TRIAL, TRIAL.c.series_id == SERIES.c.series_id)
        .where(*matching(filters))
        .group_by(SERIES.c.machine_id)
        .order_by(func.count(TRIAL.c.run_id.distinct()).desc(), SERIES.c.machine_id.desc())
        .limit(1)
    )
    return next(iter(db.scalars(statement)), None)


def _of_some_trial(column: Column[Any]) -> ColumnElement[Any]:
    """What a column says of any trial of the workload."""
    of_workload = select(column).join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
    return of_workload.where(SERIES.c.workload_id == WORKLOAD.c.workload_id).limit(1).scalar_subquery()


def _measured(column: Column[Any], filters: Filters) -> Select[Any]:
    """What the series of the trials that `filters` let through have in a column."""
    of_series = select(column).where(*matching_series(filters))
    if own := matching_trials(filters):
        of_series = of_series.where(exists().where(TRIAL.c.series_id == SERIES.c.series_id, *own))
    return of_series


def measured_workloads(db: Database, filters: Filters) -> pd.DataFrame:
    """One row per workload of the trials that `filters` let through, by name and id."""
    of_series = _measured(SERIES.c.workload_id, filters)
    statement = select(
        *selected(WORKLOAD, workload_id="workload_id", workload="name", workload_version="version"),
        *selected(WORKLOAD, "task", "batch_size", "shape", "dtype"),
        # A workload has one origin: an imported one has the version of its format.
        *(plain(_of_some_trial(TRIAL.c[name])).label(name) for name in ("source_kind", "source_name")),
    )
    measured = statement.where(WORKLOAD.c.workload_id.in_(of_series))
    return read_frame(db, measured.order_by(WORKLOAD.c.name, WORKLOAD.c.workload_id))


def measured_strategies(db: Database, filters: Filters) -> list[str]:
    """The names of the strategies of the trials that `filters` let through."""
    measured = STRATEGY.c.strategy_id.in_(_measured(SERIES.c.strategy_id, filters))
    return [row.name for row in db.rows(select(STRATEGY.c.name).where(measured).distinct())]
