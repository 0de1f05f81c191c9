"""A history moved between SQLite and PostgreSQL: every row of every table, or nothing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.engine.tables import METADATA
from compilewatch.db.errors import DatabaseError
from compilewatch.db.judge.compare.recorded_regressions import TriageEvent
from compilewatch.db.queries.data_version import data_version
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.people import TriageState
from compilewatch.db.records.requests import RequestKind, RequestSpec, ScheduleSpec
from compilewatch.db.records.trial import Build
from compilewatch.db.service.recording import record_comparison, triage
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.service.requests import new_request, save_request
from compilewatch.db.service.schedules import save_schedule
from compilewatch.db.store.backup import copy_database
from compilewatch.db.store.trials import save_trials, start_run
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import START, make_history, make_imported, make_trial
from tests.regression_cases import RUN_0, RUN_1, judged, stepping_history

HOSTILE = 'it\'s "quoted"\t\\N\n\\.; DROP TABLE trial; -- \U0001f525'


def fill(database: Database) -> None:
    """Measured, imported and failed trials; what was judged of them, planned and asked for."""
    start_run(database, run_id="announced", suite="smoke", label=HOSTILE, started_at=START, planned_trials=3)
    save_trials(
        database,
        [
            *make_history(workloads=("lstm",), builds=("2.12.0", "2.13.0"), seed=3),
            make_trial(failure="out_of_memory", label=HOSTILE, run_id="announced"),
            make_trial(build=Build(torch="2.14.0", settings={"x": [1e23, 10**17, None, HOSTILE]})),
            make_imported(ended_at=None, started_at=START - timedelta(days=900)),
        ],
    )
    save_trials(database, stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0")))
    record_comparison(database, judged(database, RUN_0, RUN_1), at=START)
    chosen = standing_regressions(database)[0].regression.regression_id
    triage(database, chosen, TriageEvent(state=TriageState.ACKNOWLEDGED, author=HOSTILE, at=START))
    save_schedule(database, "nightly", ScheduleSpec(cron="0 2 * * *", suite="standard"), at=START)
    request = new_request("r1", RequestKind.MANUAL, RequestSpec(suite="smoke"), by=HOSTILE, at=START)
    save_request(database, request)


def every_row(database: Database) -> dict[str, list[str]]:
    with database.read() as connection:
        return {
            table.name: sorted(repr(tuple(row)) for row in connection.execute(select(table)))
            for table in METADATA.sorted_tables
        }


def test_there_and_back_without_loss(
    sqlite_database: Database, sqlite_url: str, empty_postgres_url: str, tmp_path: Path
) -> None:
    fill(sqlite_database)
    back_url = f"sqlite:///{tmp_path / 'back.db'}"
    copied = copy_database(sqlite_url, empty_postgres_url).rows
    assert copy_database(empty_postgres_url, back_url).rows == copied
    expected = every_row(sqlite_database)
    assert copied == {name: len(rows) for name, rows in expected.items() if name != "data_version"}
    assert {"trial", "trial_samples", "regression", "schedule", "run_request"} <= {
        name for name, rows in copied.items() if rows
    }
    for url in (empty_postgres_url, back_url):
        with open_database(url) as moved:
            assert every_row(moved) == expected
            assert list(trial_records(moved)) == list(trial_records(sqlite_database))
            assert data_version(moved) == data_version(sqlite_database)
            assert save_trials(moved, list(trial_records(moved)))[0] == 0, "known, so it goes on"


def test_a_target_with_data_is_refused_and_stays(sqlite_database: Database, tmp_path: Path) -> None:
    fill(sqlite_database)
    target = f"sqlite:///{tmp_path / 'target.db'}"
    with open_database(target, migrate=True) as database:
        save_trials(database, [make_trial(trial_id="mine")])
        before = every_row(database)
        with pytest.raises(DatabaseError, match="holds data already; nothing was changed"):
            copy_database(sqlite_database.url, target)
        assert every_row(database) == before


def test_a_copy_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="no database at"):
        copy_database(f"sqlite:///{tmp_path / 'absent.db'}", f"sqlite:///{tmp_path / 'new.db'}")
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"SQLite format 3\0" + bytes(5000))
    with pytest.raises(DatabaseError):
        copy_database(f"sqlite:///{broken}", f"sqlite:///{tmp_path / 'new.db'}")
    assert [path.name for path in tmp_path.iterdir()] == ["broken.db"]


def test_the_command_says_what_was_copied(
    sqlite_database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(sqlite_database)
    target = f"sqlite:///{tmp_path / 'target.db'}"
    assert exit_code_of(app, ["db", "copy", sqlite_database.url, target]) == 0
    trials = len(list(trial_records(sqlite_database)))
    assert f"{target} holds all {trials} trials" in " ".join(capsys.readouterr().out.split())
    assert exit_code_of(app, ["db", "copy", sqlite_database.url, target]) == 2
    assert "holds data already" in capsys.readouterr().err
