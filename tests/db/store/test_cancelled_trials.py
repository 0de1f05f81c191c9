"""A cancelled trial is counted as stored and as cancelled, never as failed, in every row with counts."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import select

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.queries.facets import machines, runs
from compilewatch.db.records.trial import Trial
from compilewatch.db.store.removal import remove_trials
from compilewatch.db.store.trials import save_trials
from compilewatch.db.tables.trials import BUILD, MACHINE, RUN, SERIES, STRATEGY, WORKLOAD
from tests.builders import make_trial

OLD = Path(__file__).parents[1] / "schemas" / "0011.db"
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


def test_the_upgrade_takes_cancelled_trials_out_of_the_failed_ones(tmp_path: Path) -> None:
    """Of the file, which counts one failure, two more trials were cancelled."""
    file = tmp_path / "old.db"
    shutil.copyfile(OLD, file)
    with closing(sqlite3.connect(file)) as connection, connection:
        cancelled = connection.execute(
            "SELECT trial_id, run_id, build_id, trial.series_id, machine_id, workload_id, strategy_id "
            "FROM trial JOIN series ON series.series_id = trial.series_id WHERE status = 'ok' LIMIT 2"
        ).fetchall()
        for trial, *ids in cancelled:
            connection.execute(
                "UPDATE trial SET status = 'failed', failure_kind = 'cancelled' WHERE trial_id = ?", (trial,)
            )
            for table, key in zip(
                ("run", "build", "series", "machine", "workload", "strategy"), ids, strict=True
            ):
                raised = f"UPDATE {table} SET failed_trials = failed_trials + 1 WHERE {table}_id = ?"
                connection.execute(raised, (key,))
    with open_database(f"sqlite:///{file}", migrate=True) as database:
        totals = {
            name: [sum(counts) for counts in zip(*rows, strict=True)]
            for name, rows in counted(database).items()
        }
    assert totals == {table.name: [43, 1, 2] for table in DIMENSIONS}
