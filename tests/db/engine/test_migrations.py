"""The schema: from nothing, from every revision, by many at once, and never different from the tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from compilewatch.db.engine.schema import HEAD, OLDEST, VERSION_TABLE
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.engine.tables import METADATA
from compilewatch.db.errors import DatabaseError
from compilewatch.db.queries.trials import trial_record
from compilewatch.db.store.trials import save_trial
from tests.builders import make_trial
from tests.db.processes import migrate_at_once

ROOT = Path(__file__).parents[3]
MIGRATIONS = ROOT / "db" / "engine" / "migrations"


def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return ScriptDirectory.from_config(config)


def differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(
        connection, opts={"compare_type": True, "version_table": VERSION_TABLE}
    )
    found = compare_metadata(context, METADATA)
    # Each release makes this table as it needs it.
    return [each for each in found if each[0] not in ("add_column", "remove_column") or each[2] != "run_case"]


def test_migrations_make_the_tables_that_the_code_has(database: Database) -> None:
    with database.read() as connection:
        assert differences(connection) == []
        assert set(inspect(connection).get_table_names()) == {*METADATA.tables, VERSION_TABLE}


def test_a_missing_index_or_column_would_be_noticed(database: Database) -> None:
    with database.write() as connection:
        connection.execute(text("DROP INDEX ix_trial_started_at"))
        connection.execute(text("ALTER TABLE run DROP COLUMN planned_trials"))
    with database.read() as connection:
        assert len(differences(connection)) == 2


def test_every_constraint_has_the_name_that_later_migrations_will_use(database: Database) -> None:
    with database.read() as connection:
        keys = [
            key["name"] for table in METADATA.tables for key in inspect(connection).get_foreign_keys(table)
        ]
    assert sorted(map(str, keys)) == [
        "fk_annotation_build_id_build",
        "fk_annotation_machine_id_machine",
        "fk_firing_request_id_run_request",
        "fk_firing_schedule_schedule",
        "fk_latest_run_id_run",
        "fk_latest_series_id_series",
        "fk_notification_regression_id_regression",
        "fk_regression_revises_regression",
        "fk_regression_series_id_series",
        "fk_run_case_build_id_build",
        "fk_run_case_run_id_run",
        "fk_run_case_series_id_series",
        "fk_run_part_build_id_build",
        "fk_run_part_machine_id_machine",
        "fk_run_part_run_id_run",
        "fk_schedule_watch_schedule_schedule",
        "fk_series_machine_id_machine",
        "fk_series_strategy_id_strategy",
        "fk_series_workload_id_workload",
        "fk_triage_event_regression_id_regression",
        "fk_trial_build_id_build",
        "fk_trial_detail_trial_id_trial",
        "fk_trial_run_id_run",
        "fk_trial_samples_trial_id_trial",
        "fk_trial_series_id_series",
    ]


def test_the_newest_revision_is_the_one_the_code_expects() -> None:
    revisions = [script.revision for script in scripts().walk_revisions()]
    assert scripts().get_current_head() == HEAD
    assert revisions == [f"{number:04d}" for number in range(int(HEAD), int(OLDEST) - 1, -1)]


def test_upgrading_twice_is_upgrading_once(empty_database_url: str) -> None:
    trial = make_trial()
    with open_database(empty_database_url, migrate=True) as database:
        save_trial(database, trial)
    with open_database(empty_database_url, migrate=True) as database:
        assert trial_record(database, trial.trial_id) == trial


def test_a_shared_postgresql_database_keeps_what_others_have_in_it(empty_postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(empty_postgres_url) as other:
        other.execute("CREATE TABLE procrastinate_jobs (id int)")
        other.execute("CREATE TABLE alembic_version (version_num text)")
    with open_database(empty_postgres_url, migrate=True) as database, database.read() as connection:
        assert {"procrastinate_jobs", "alembic_version", "trial"} <= set(
            inspect(connection).get_table_names()
        )


def test_a_table_of_our_name_is_not_taken_over(empty_postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(empty_postgres_url) as other:
        other.execute("CREATE TABLE machine (id int)")
    with pytest.raises(DatabaseError, match="another program"):
        open_database(empty_postgres_url, migrate=True)


def test_many_processes_can_start_on_a_new_database_at_once(empty_database_url: str) -> None:
    assert migrate_at_once(empty_database_url, 4) == [0] * 4
    with open_database(empty_database_url) as database, database.read() as connection:
        assert connection.execute(text("SELECT id, version FROM data_version")).all() == [(1, 0)]
