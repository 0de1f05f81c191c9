"""A cancelled trial is counted as stored and as cancelled, never as failed, in every row with counts."""

from __future__ import annotations

from sqlalchemy import select

from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import BUILD, MACHINE, RUN, SERIES, STRATEGY, WORKLOAD
from compilewatch.db.queries.facets import machines, runs
from compilewatch.db.records.trial import Trial
from compilewatch.db.store.removal import remove_trials
from compilewatch.db.store.trials import save_trials
from tests.builders import make_trial

TALLIED = ("run", "build", "series", "machine", "workload", "strategy")
DIMENSIONS = (MACHINE, BUILD, WORKLOAD, STRATEGY, SERIES, RUN)
FAILURES = (None, "crash", "cancelled", "cancelled")
COUNTED = [(4, 1, 2)]
"""Trials, failed ones and cancelled ones of every dimension: all four trials are of one case and run."""


def trials(suite: str | None = None) -> list[Trial]:
    return [make_trial(run_id="R", failure=failure, suite=suite) for failure in FAILURES]


def counted(database: Database) -> dict[str, list[tuple[int, ...]]]:
    with database.read() as connection:
        return {
            table.name: [
                tuple(row)
                for row in connection.execute(
                    select(table.c.trials, table.c.failed_trials, table.c.cancelled_trials)
                )
            ]
            for table in DIMENSIONS
        }


def test_a_cancelled_trial_counts_as_no_failure(database: Database) -> None:
    stored = trials("smoke")
    save_trials(database, stored)
    assert counted(database) == {table.name: COUNTED for table in DIMENSIONS}
    assert [frame["failed_trials"].tolist() for frame in (machines(database), runs(database))] == [[1], [1]]
    remove_trials(database, [stored[3].trial_id])
    assert counted(database) == {table.name: [(3, 1, 1)] for table in DIMENSIONS}
