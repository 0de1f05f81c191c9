"""Keeping up to date what the trials of each case in each run come to."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, delete, insert, update

from compilewatch.db.columns.point import EDITION
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.writing import bump_data_version, lock_data_version
from compilewatch.db.queries.cases.run_cases import (
    WorkloadOfRun,
    is_current,
    regions,
    summed_up,
    workloads_of_runs,
)
from compilewatch.db.tables.runs import RUN_CASE
from compilewatch.db.tables.trials import DATA_VERSION


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
