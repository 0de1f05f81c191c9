"""Databases in which the settings of a trial made its build: what differed in them alone becomes one build,
and what was recorded of one event becomes one regression.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.queries.facets import builds
from compilewatch.db.queries.people.regressions import regressions_frame
from compilewatch.db.queries.service.integrity import find_damage
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.ids import build_identity, identity
from compilewatch.db.store.backup import restore

OLD = Path(__file__).parents[1] / "schemas" / "0016.db"
SETTINGS = {"matmul_precision": "high", "environment": {"TORCHINDUCTOR_VEC_ISA_OK": "1"}}
OTHER = "0123456789abcdef"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The file of the release before, with one of its regressed builds split in two by a variable of a suite,
    and with the regressions between the halves recorded twice.
    """
    file = tmp_path / "old.db"
    shutil.copyfile(OLD, file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.row_factory = sqlite3.Row
        recorded = connection.execute("SELECT * FROM regression WHERE revises IS NULL").fetchall()
        head = json.loads(recorded[0]["document"])["head"]["build_ids"][0]
        _insert(
            connection,
            "build",
            _row(connection, "build", head),
            build_id=OTHER,
            settings=json.dumps(SETTINGS),
        )
        for (trial,) in connection.execute(
            "SELECT trial_id FROM trial WHERE build_id = ? LIMIT 3", (head,)
        ).fetchall():
            connection.execute("UPDATE trial SET build_id = ? WHERE trial_id = ?", (OTHER, trial))
        connection.execute("UPDATE build SET trials = 3, failed_trials = 0 WHERE build_id = ?", (OTHER,))
        connection.execute("UPDATE build SET trials = trials - 3 WHERE build_id = ?", (head,))
        part = connection.execute("SELECT * FROM run_part WHERE build_id = ?", (head,)).fetchone()
        _insert(connection, "run_part", part, build_id=OTHER, trials=3)
        connection.execute("UPDATE run_part SET trials = trials - 3 WHERE build_id = ?", (head,))
        for row in recorded:
            document = json.loads(row["document"])
            document["head"]["build_ids"] = [OTHER]
            key, name = identity({"builds": [OTHER]}), "twin" + row["regression_id"][4:]
            document |= {"head_key": key, "regression_id": name}
            _insert(
                connection, "regression", row, regression_id=name, head_key=key, document=json.dumps(document)
            )
            said = (name, 1, "expected", "ada", "2026-11-24 10:00:00.000000", "known", None)
            connection.execute("INSERT INTO triage_event VALUES (?, ?, ?, ?, ?, ?, ?)", said)
    return file


def _row(connection: sqlite3.Connection, table: str, key: str) -> Any:
    return connection.execute(f"SELECT * FROM {table} WHERE {table}_id = ?", (key,)).fetchone()


def _insert(connection: sqlite3.Connection, table: str, row: Any, **changes: Any) -> None:
    values = {**dict(row), **changes}
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", [*values.values()])


def _expect_one(database: Database) -> None:
    frame = builds(database)
    stored = list(trial_records(database))
    assert set(frame["build_id"]) >= {build_identity(trial.build) for trial in stored}
    assert len(frame) == len({build_identity(trial.build) for trial in stored})
    assert any(trial.build.settings == SETTINGS for trial in stored)
    assert sum(frame["trials"]) == len(stored)
    assert find_damage(database) == []
    assert OTHER not in set(frame["build_id"])
    shown = regressions_frame(database)
    assert not shown.duplicated(["workload", "strategy", "base", "head"]).any()
    assert set(shown["state"]) == {"expected"}
    assert set(shown["author"]) == {"ada"}


def test_it_becomes_one_in_sqlite(old: Path) -> None:
    with open_database(f"sqlite:///{old}", migrate=True) as database:
        _expect_one(database)
        with database.read() as connection:
            kept = {*connection.exec_driver_sql("SELECT regression_id FROM regression").scalars()}
    with closing(sqlite3.connect(OLD)) as connection:
        recorded = connection.execute("SELECT regression_id FROM regression WHERE revises IS NULL").fetchall()
    twins = [{name, f"twin{name[4:]}"} for (name,) in recorded]
    assert kept <= set[str]().union(*twins)
    # One event has a row of each metric; of it, and of the twins, one is left.
    assert max(len(kept & each) for each in twins) == 1


def test_it_becomes_one_in_postgresql(old: Path, empty_postgres_url: str) -> None:
    restore(old, empty_postgres_url)
    with open_database(empty_postgres_url, read_only=True) as database:
        _expect_one(database)
