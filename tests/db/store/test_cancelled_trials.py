"""A cancelled trial is counted as stored and as cancelled, never as failed, in every row with counts."""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, make_url, select

from db.engine.session import Database, open_database
from db.queries.facets import machines, runs, suites
from db.records.trial import Trial
from db.store.removal import remove_trials
from db.store.trials import save_trials
from db.tables.trials import BUILD, MACHINE, RUN, SERIES, STRATEGY, WORKLOAD
from tests.builders import make_trial
from tests.db.engine.test_migrations import MIGRATIONS

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
    assert suites(database)["failed_trials"].tolist() == [1]
    remove_trials(database, [stored[3].trial_id])
    assert counted(database) == {table.name: [(3, 1, 1)] for table in DIMENSIONS}


def test_the_upgrade_takes_cancelled_trials_out_of_the_failed_ones(empty_database_url: str) -> None:
    with open_database(empty_database_url, migrate=True) as database:
        save_trials(database, trials())
    url = make_url(empty_database_url)
    is_sqlite = url.get_backend_name() == "sqlite"
    engine = create_engine(url if is_sqlite else url.set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["connection"] = connection
        command.downgrade(config, "0011")
        before = [connection.scalar(select(table.c.failed_trials)) for table in DIMENSIONS]
    engine.dispose()
    assert before == [3] * len(DIMENSIONS)
    with open_database(empty_database_url, migrate=True) as database:
        assert counted(database) == {table.name: COUNTED for table in DIMENSIONS}
