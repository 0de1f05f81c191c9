"""A database of the release before regressions were recorded: upgraded, with every number as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, MetaData, Table, create_engine, insert, inspect, make_url, select

from db.engine.migrations import HEAD, VERSION_TABLE
from db.engine.session import Database, open_database
from db.errors import DatabaseError
from db.queries.people.regressions import regressions_frame
from db.queries.run_parts import run_parts
from db.queries.service.integrity import find_damage
from db.queries.trials import trial_record
from db.records.ids import build_identity, machine_identity
from db.store.trials import save_trials
from db.tables.trials import METADATA
from tests.builders import make_history, make_imported, make_trial
from tests.db.processes import migrate_at_once

MIGRATIONS = Path(__file__).parents[3] / "db" / "engine" / "migrations"
ADDED = {"regression", "triage_event", "notification"}
OLD_NAMES = {
    "build",
    "data_version",
    "latest",
    "machine",
    "run",
    "series",
    "strategy",
    "trial",
    "trial_detail",
    "trial_samples",
    "workload",
}
OLD_TABLES = [table for table in METADATA.sorted_tables if table.name in OLD_NAMES]
TRIALS = [
    *make_history(workloads=("mlp",), builds=("2.12.0", "2.13.0")),
    make_trial(failure="out_of_memory"),
    make_imported(),
]


_SETTINGS = {build_identity(trial.build): {"settings": trial.build.settings} for trial in TRIALS}


def _rows(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    return {
        table.name: [
            dict(row) for row in connection.execute(select(table).order_by(*table.primary_key)).mappings()
        ]
        for table in OLD_TABLES
    }


def _to_revision(connection: Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _parts() -> list[dict[str, str]]:
    """What each run measured, worked out from the records."""
    parts = {(trial.run_id, machine_identity(trial.machine), build_identity(trial.build)) for trial in TRIALS}
    return [dict(zip(("run_id", "machine_id", "build_id"), part, strict=True)) for part in sorted(parts)]


@pytest.fixture
def old_database(empty_database_url: str, sqlite_database: Database) -> dict[str, list[dict[str, Any]]]:
    """Fills `empty_database_url` as the earlier release would have: its tables, the rows of real trials."""
    save_trials(sqlite_database, TRIALS)
    with sqlite_database.read() as connection:
        rows = _rows(connection)
    url = make_url(empty_database_url)
    engine = create_engine(
        url if url.get_backend_name() == "sqlite" else url.set(drivername="postgresql+psycopg")
    )
    with engine.begin() as connection:
        _to_revision(connection, "0001")
        assert set(inspect(connection).get_table_names()) == OLD_NAMES | {VERSION_TABLE}
        for table in OLD_TABLES:
            connection.execute(table.delete())
            old = Table(table.name, MetaData(), autoload_with=connection)
            # What later releases keep elsewhere.
            stored = [{**row, **_SETTINGS.get(row.get("build_id"), {})} for row in rows[table.name]]
            connection.execute(
                insert(old), [{name: row[name] for name in row if name in old.c} for row in stored]
            )
    engine.dispose()
    # What a migration cannot know: it reads no samples.
    for trial in rows["trial"]:
        trial["latency_sd_ns"] = None
    # Nor does it sum up any.
    rows["data_version"][0]["run_case_edition"] = 0
    return rows


def test_the_upgrade_changes_no_number(
    empty_database_url: str, old_database: dict[str, list[dict[str, Any]]]
) -> None:
    with open_database(empty_database_url, migrate=True) as database:
        with database.read() as connection:
            assert _rows(connection) == old_database
            assert set(inspect(connection).get_table_names()) >= ADDED
        assert [trial_record(database, trial.trial_id) for trial in TRIALS] == TRIALS
        assert run_parts(database, {trial.run_id for trial in TRIALS}).to_dict("records") == _parts()
        assert regressions_frame(database).empty


def test_two_processes_upgrade_at_once(
    empty_database_url: str, old_database: dict[str, list[dict[str, Any]]]
) -> None:
    assert migrate_at_once(empty_database_url, 2) == [0, 0]
    with open_database(empty_database_url) as database, database.read() as connection:
        assert _rows(connection) == old_database
        assert find_damage(database) == []


@pytest.mark.usefixtures("old_database")
def test_without_an_upgrade_nothing_is_touched_and_the_command_is_named(empty_database_url: str) -> None:
    with pytest.raises(DatabaseError) as caught:
        open_database(empty_database_url)
    assert f"has schema 0001, this release needs {HEAD}" in caught.value.message
    assert caught.value.next_step == "Run `compilewatch db upgrade`."
