"""Points of histories, of what the table `run_case` keeps: the trials of one case in one run, summed up."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from sqlalchemy import ColumnElement, Connection, Select, func, select

from compilewatch.db.columns.case import CASE_KEYS
from compilewatch.db.columns.metrics import EDITION, POINT_COLUMNS, POINT_KEYS, STORED_POINT
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import DATA_VERSION, RUN, RUN_CASE, RUN_PART, SERIES, TRIAL
from compilewatch.db.errors import DatabaseError
from compilewatch.db.metrics import trend
from compilewatch.db.metrics.frames import empty_frame
from compilewatch.db.queries.run_parts import within
from compilewatch.db.queries.selection import (
    Filters,
    any_of,
    arrays_of,
    matching_series,
    of_builds,
    of_conditions,
    of_series,
    plain,
)
from compilewatch.db.queries.trials import trials_frame, trials_to_sum_up

WorkloadOfRun = tuple[str, str]
"""The ids of a run and of a workload in it: what is summed up together."""
_AT_ONCE = 500
_ORDER = ["last_started_at", *CASE_KEYS, "run_id"]
_IN_ORDER = {name: POINT_COLUMNS[name] for name in _ORDER}


def points_by_run(
    db: Database,
    filters: Filters = Filters(),  # noqa: B008
    columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """As `db.metrics.trend.series_points` by run, of all trials of the points that `filters` let through: one
    is in the time of its newest trial. With `columns` only those of `POINT_COLUMNS`, for a fraction of the
    cost.

    Raises ValueError for filters by status, which is of trials, and DatabaseError where another release made
    what is kept.
    """
    if filters.statuses:
        raise ValueError("a status is of a trial, not of a point")
    wanted = {name: POINT_COLUMNS[name] for name in columns} if columns is not None else POINT_COLUMNS
    with db.read() as connection:
        if not is_current(connection):
            if connection.scalar(select(TRIAL.c.trial_id).limit(1)) is None:
                return empty_frame(wanted)
            raise DatabaseError(
                f"What the runs of {db.url} come to was summed up by another release.",
                "Run `compilewatch db upgrade`.",
            )
        points = _points(connection, filters, {**_IN_ORDER, **wanted})
    return points.sort_values(_ORDER, ignore_index=True)[list(wanted)]


def known_columns(db: Database, filters: Filters, columns: Sequence[str]) -> frozenset[str]:
    """Those of `columns` that any point has a value of, of those that `filters` let through."""
    counts = (func.count(RUN_CASE.c[name]).label(name) for name in columns)
    with db.read() as connection:
        known = connection.execute(select(*counts).where(*_matching(filters))).one()
    return frozenset(name for name, count in known._mapping.items() if count)


def points_by_build(
    db: Database,
    filters: Filters = Filters(),  # noqa: B008
    columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """As `db.metrics.trend.series_points` by build. A build that one run measured has the points of that run;
    those of others are summed up of their trials, eager's among them whatever strategies are asked for.
    """
    part = RUN_PART.c
    counts = select(part.build_id, func.count()).where(*within(filters))
    runs = db.rows(counts.group_by(part.machine_id, part.build_id))
    several = {build for build, count in runs if count > 1}
    if not several:
        return points_by_run(db, filters, columns)
    wanted = list(POINT_COLUMNS if columns is None else columns)
    of_workloads = replace(filters, builds=tuple(several), strategies=())
    of_trials = trend.series_points(trials_frame(db, of_workloads), by="build")
    if filters.strategies:
        of_trials = of_trials[of_trials["strategy"].isin(filters.strategies)]
    once = tuple({build for build, _ in runs} - several)
    names = list(dict.fromkeys((*_ORDER, *wanted)))
    of_runs = points_by_run(db, replace(filters, builds=once), names) if once else of_trials.iloc[:0]
    points = pd.concat([of_runs[names], of_trials[names]], ignore_index=True)
    return points.sort_values(_ORDER, ignore_index=True)[wanted]


def _points(connection: Connection, filters: Filters, wanted: dict[str, str]) -> pd.DataFrame:
    stored = [*POINT_KEYS, *(name for name in wanted if name in STORED_POINT and name not in POINT_KEYS)]
    statement = select(*(plain(RUN_CASE.c[name]) for name in stored)).where(*_matching(filters))
    values = arrays_of(connection.execute(statement), {name: STORED_POINT[name] for name in stored})
    values |= of_series(connection, filters, values["series_id"].tolist())
    if wanted.keys() - values.keys() - {"settings"}:
        values |= of_builds(connection, values["build_id"].tolist())
    if "settings" in wanted:
        values |= of_conditions(connection, values["conditions_id"].tolist())
    return pd.DataFrame({name: values[name] for name in wanted}, copy=False)


def _matching(filters: Filters) -> list[ColumnElement[bool]]:
    points = RUN_CASE.c
    conditions = any_of(
        (points.build_id, filters.builds),
        (points.run_id, filters.runs),
        (points.source_kind, filters.sources),
    )
    if filters.suites:
        conditions.append(points.run_id.in_(select(RUN.c.run_id).where(RUN.c.suite.in_(filters.suites))))
    if series := matching_series(filters):
        conditions.append(points.series_id.in_(select(SERIES.c.series_id).where(*series)))
    if filters.since is not None:
        conditions.append(points.last_started_at >= filters.since)
    if filters.until is not None:
        conditions.append(points.last_started_at <= filters.until)
    return conditions


def is_current(connection: Connection) -> bool:
    """Whether this release made what is kept."""
    return connection.scalar(select(DATA_VERSION.c.run_case_edition)) == EDITION


# What is kept, and what it has to be.


def workloads_of_runs(connection: Connection) -> list[WorkloadOfRun]:
    """Of every run that has trials."""
    statement = select(TRIAL.c.run_id, SERIES.c.workload_id).join(
        SERIES, SERIES.c.series_id == TRIAL.c.series_id
    )
    return [(row.run_id, row.workload_id) for row in connection.execute(statement.distinct())]


def regions(pairs: Collection[WorkloadOfRun]) -> Iterator[tuple[list[str], Select[Any]]]:
    """Runs, and the series of workloads, so that every one of `pairs` is in one of them: so many at once."""
    in_order = sorted(pairs)
    for start in range(0, len(in_order), _AT_ONCE):
        some = in_order[start : start + _AT_ONCE]
        runs, workloads = (sorted(set(ids)) for ids in zip(*some, strict=True))
        yield runs, select(SERIES.c.series_id).where(SERIES.c.workload_id.in_(workloads))


def summed_up(connection: Connection, runs: Sequence[str], series: Select[Any]) -> list[dict[str, Any]]:
    """The rows that `run_case` has to hold of a region, of its trials: the columns of `STORED_POINT`."""
    trials = trials_to_sum_up(connection, [TRIAL.c.run_id.in_(runs), TRIAL.c.series_id.in_(series)])
    return [row | {"conditions_id": row["conditions_id"] or ""} for row in trend.run_points(trials)]


def kept(connection: Connection, runs: Sequence[str], series: Select[Any]) -> list[dict[str, Any]]:
    """The rows that `run_case` holds of a region."""
    statement = select(*(RUN_CASE.c[name] for name in STORED_POINT)).where(
        RUN_CASE.c.run_id.in_(runs), RUN_CASE.c.series_id.in_(series)
    )
    return [dict(row._mapping) for row in connection.execute(statement)]
