"""Every kind of damage that `db check` looks for is found and named; a sound database has none."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.service.integrity import find_damage
from compilewatch.db.store.removal import compact_samples
from compilewatch.db.store.trials import save_trials
from tests.builders import START, make_history, make_imported, make_timed, make_trial
from tests.db.damaged_page import overwrite_page

TRIALS = [
    *make_history(workloads=("mlp",), builds=("2.12.0", "2.13.0")),
    make_trial(failure="out_of_memory"),
    make_trial(failure="cancelled", started_at=START.replace(year=2027)),
    make_imported(),
    make_timed(),
]


@pytest.fixture
def filled_url(sqlite_url: str, _filled: Path) -> str:
    """A database of `TRIALS` to damage."""
    shutil.copyfile(_filled, sqlite_url.removeprefix("sqlite:///"))
    return sqlite_url


@pytest.fixture(scope="module")
def _filled(_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled") / "filled.db"
    shutil.copyfile(_sqlite_template, path)
    with open_database(f"sqlite:///{path}") as database:
        save_trials(database, TRIALS)
    return path


def test_a_sound_database_has_no_damage(database: Database) -> None:
    assert find_damage(database) == []
    save_trials(database, TRIALS)
    assert find_damage(database) == []
    compact_samples(database, START.replace(year=2027))
    assert find_damage(database) == []


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        (
            "UPDATE trial_samples SET data = substr(data, 1, length(data) - 3) WHERE kind = 'samples_ns'",
            "arrays of samples cannot be read",
        ),
        ("UPDATE trial_samples SET n = n + 1 WHERE kind = 'warmup_ns'", "arrays of samples cannot be read"),
        ("UPDATE trial_samples SET codec = 'rot13'", "arrays of samples cannot be read"),
        (
            "UPDATE trial SET latency_ns = latency_ns * 1.01 WHERE samples > 0",
            "figures that do not follow from their samples",
        ),
        (
            "UPDATE trial SET control_samples = 7 WHERE control_samples > 0",
            "figures that do not follow from their samples",
        ),
        *(
            (f"UPDATE trial SET {column} = 1 WHERE device_ns > 0", "1 trial with figures that do not follow")
            for column in ("device_ns", "control_wall_pipelined_ns", "latency_ns", "control_samples")
        ),
        ("DELETE FROM trial_detail", "trials without details"),
        ("UPDATE run SET trials = trials + 1", "Wrong count of trials in 3 rows of run"),
        ("UPDATE machine SET trials = 0", "Wrong count of trials in 1 row of machine"),
        ("DELETE FROM build", "rows of trial without the build that build_id names"),
        ("DELETE FROM conditions", "rows of trial without the conditions that they name"),
        ("DELETE FROM workload", "rows of series without the workload that workload_id names"),
        (
            "DELETE FROM trial WHERE status = 'ok'",
            "rows of trial_samples without the trial that trial_id names",
        ),
        (
            "UPDATE latest SET started_at = '2020-01-01 00:00:00.000000'",
            "series with a newest run not theirs",
        ),
        ("DELETE FROM trial_samples WHERE kind = 'samples_ns'", "trials without samples"),
        ("UPDATE run_case SET speedup = speedup * 1.01", "rows of run_case that the trials do not come to"),
        ("DELETE FROM run_case WHERE trials = 3", "rows of run_case that the trials do not come to"),
        (
            "UPDATE trial_detail SET cold_start = '{half'",
            "cold_start of 16 rows of trial_detail cannot be read",
        ),
        ("UPDATE build SET packages = 'none'", "packages of 2 rows of build cannot be read"),
        ("UPDATE trial SET status = 'okay'", "status of 16 rows of trial cannot be read"),
        ("UPDATE trial SET started_at = 'yesterday'", "started_at of 16 rows of trial cannot be read"),
    ],
)
def test_damage_is_named(statement: str, what: str, filled_url: str) -> None:
    # As from outside: a program of ours could not, the references are enforced.
    with closing(sqlite3.connect(filled_url.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute(statement)
    with open_database(filled_url, read_only=True) as database:
        found = find_damage(database)
    assert any(what in damage.what for damage in found), found
    ways_out = ("compilewatch db restore", "compilewatch db remove-trials", "Check again")
    assert all(damage.count > 0 and any(way in damage.next_step for way in ways_out) for damage in found)


def test_damage_is_found_on_postgresql_too(request: pytest.FixtureRequest) -> None:
    with open_database(request.getfixturevalue("empty_postgres_url"), migrate=True) as database:
        save_trials(database, TRIALS)
        with database.write() as connection:
            connection.execute(text("UPDATE trial_samples SET data = '\\x00' WHERE kind = 'samples_ns'"))
            connection.execute(text("UPDATE build SET trials = 99"))
        assert len(find_damage(database)) == 2


def test_a_damaged_page_is_found(filled_url: str) -> None:
    overwrite_page(Path(filled_url.removeprefix("sqlite:///")), "ix_run_request_state_priority_asked_at")
    with open_database(filled_url, read_only=True) as database:
        (found,) = find_damage(database)
    assert found.what.startswith("The file is damaged")
