"""A record of a moment that cannot be is refused at every door, found where it is stored, and taken out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

import compilewatch.db.store.trial_writer
from compilewatch.db.engine.repository import CLOCK_SKEW
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import DATA_VERSION, METADATA
from compilewatch.db.errors import NotFoundError, RecordError
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.records.trial import Trial
from compilewatch.db.service.integrity import find_damage, trials_of_impossible_moments
from compilewatch.db.store.removal import remove_trials
from compilewatch.db.store.trials import save_trial, save_trials
from compilewatch.runner.device.state import device_facts
from compilewatch.runner.process.measured_process import Attempt
from tests.builders import START, make_build, make_history, make_machine, make_trial, make_workload

NOW = datetime.now(UTC)
WRONG: dict[str, dict[str, Any]] = {
    "is of 2999-": {"started_at": START.replace(year=2999), "ended_at": None},
    "which is not yet": {"started_at": NOW, "ended_at": NOW + timedelta(days=1)},
    "before there was torch": {"started_at": datetime(1, 1, 1, tzinfo=UTC), "ended_at": None},
    "before it begins": {"started_at": START, "ended_at": START - timedelta(seconds=1)},
}


def rows(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that is stored, but for the number of writes."""
    with database.read() as connection:
        return {
            table.name: sorted(map(repr, connection.execute(select(table)).all()))  # type: ignore[misc]
            for table in METADATA.sorted_tables
            if table is not DATA_VERSION
        }


def wrong_trials() -> list[Trial]:
    return [make_trial(trial_id=f"wrong-{number}", **times) for number, times in enumerate(WRONG.values())]


@pytest.mark.usefixtures("today")
@pytest.mark.parametrize("why", WRONG)
def test_a_record_of_a_moment_that_cannot_be_is_refused(why: str, database: Database) -> None:
    with pytest.raises(RecordError, match=f"Trial odd .*{why}"):
        save_trials(database, [make_trial(), make_trial(trial_id="odd", **WRONG[why])])
    assert not any(rows(database).values())


@pytest.mark.usefixtures("today")
def test_a_clock_that_is_minutes_ahead_is_believed(database: Database) -> None:
    now = datetime.now(UTC)
    save_trial(database, make_trial(started_at=now + CLOCK_SKEW / 2, ended_at=None))
    with pytest.raises(RecordError, match="which is not yet"):
        save_trial(database, make_trial(started_at=now + 3 * CLOCK_SKEW, ended_at=None))


@pytest.mark.usefixtures("today")
@pytest.mark.parametrize("dry_run", [True, False])
def test_an_import_says_which_record_it_is(dry_run: bool, tmp_path: Path, sqlite_database: Database) -> None:
    file = tmp_path / "some.jsonl"
    file.write_text("".join(trial.to_json() + "\n" for trial in (make_trial(), wrong_trials()[0])))
    report = import_paths(sqlite_database, [file], dry_run=dry_run)
    (error,) = report.errors
    assert "Trial wrong-0 is of 2999-" in str(error)
    assert not any(rows(sqlite_database).values())


def test_what_is_stored_already_is_found_and_taken_out(
    database: Database, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    save_trials(database, make_history(workloads=("mlp",), builds=("2.12.0", "2.13.0")))
    before = rows(database)
    monkeypatch.setattr(compilewatch.db.store.trial_writer, "wrong_moment", lambda *_: None)
    others = {"machine": make_machine("other"), "build": make_build(torch="9.9.0")}
    future = {"started_at": START.replace(year=2999), "ended_at": None}
    planted = [
        *wrong_trials(),
        make_trial(trial_id="wrong-a", workload=make_workload("mlp"), failure="crash", **future),
        make_trial(trial_id="wrong-b", workload=make_workload("new"), **others, **future),
    ]
    save_trials(database, planted)
    assert find_damage(database) != []
    request.getfixturevalue("today")
    (damage,) = find_damage(database)
    assert damage.count == len(planted)
    assert "wrong-0" in damage.what
    assert "compilewatch db remove-trials --impossible-moments" in damage.next_step
    found = trials_of_impossible_moments(database)
    assert found == sorted(trial.trial_id for trial in planted)
    with pytest.raises(NotFoundError, match="1 trial not stored: nobody"):
        remove_trials(database, [*found, "nobody"])
    assert remove_trials(database, found) == len(planted)
    assert find_damage(database) == []
    assert rows(database) == before


def test_a_clock_that_is_set_back_ends_no_trial_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [100.0]
    monkeypatch.setattr("compilewatch.runner.process.measured_process.time.monotonic", lambda: seconds[0])
    attempt = Attempt({}, "python", lambda: False, device_facts("cpu"))
    attempt.begin()
    seconds[0] = 107.0
    assert attempt.now() - attempt.started_at == timedelta(seconds=7)
