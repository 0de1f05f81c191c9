"""What an earlier release stored, a sample of 0 ns: it is named, exported, taken out, and breaks nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.engine.tables import TRIAL
from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.exporting import ExportFormat
from compilewatch.db.queries.trials import trial_record, trial_records, trials_frame
from compilewatch.db.records.trial import Summary, Trial
from compilewatch.db.service.integrity import find_damage, trials_of_impossible_samples
from compilewatch.db.store.removal import remove_trials
from compilewatch.db.store.trials import save_trial, save_trials
from compilewatch.runner.cli.app import app
from tests.builders import make_history, make_imported, make_trial
from tests.runner.terminal import in_this_process

SOUND = make_history(workloads=("mlp",), builds=("2.12.0", "2.13.0"))


def without_time() -> list[Trial]:
    """As no record can be made any more: copies are not checked."""
    whole = make_trial(trial_id="timeless")
    summary = Summary.model_construct(latency_ns=0, control_latency_ns=5, metrics={})
    return [
        whole.model_copy(update={"samples_ns": [0] * len(whole.samples_ns)}),
        make_trial(trial_id="warmed", warmup_ns=[9, 8]).model_copy(update={"warmup_ns": [9, 0]}),
        make_imported(trial_id="summed").model_copy(update={"summary": summary}),
    ]


def test_it_is_found_and_taken_out(database: Database) -> None:
    save_trials(database, SOUND)
    save_trials(database, without_time())
    (damage,) = find_damage(database)
    assert damage.what == "3 trials with a sample that took no time: summed, timeless, warmed."
    assert "compilewatch db remove-trials --impossible-samples" in damage.next_step
    assert trials_of_impossible_samples(database) == ["summed", "timeless", "warmed"]
    remove_trials(database, trials_of_impossible_samples(database))
    assert find_damage(database) == []
    with database.read() as connection:
        assert len(connection.execute(select(TRIAL.c.trial_id)).all()) == len(SOUND)


def test_reading_it_names_it(database: Database) -> None:
    save_trials(database, without_time())
    for trial_id, field in (("timeless", "samples_ns"), ("warmed", "warmup_ns"), ("summed", "summary")):
        with pytest.raises(RecordError, match=f"Trial {trial_id} is stored as no record may be: {field}"):
            trial_record(database, trial_id)
    with pytest.raises(RecordError, match="compilewatch db check"):
        list(trial_records(database))
    assert set(trials_frame(database)["trial_id"]) == {"timeless", "warmed", "summed"}


def test_the_same_id_again_is_a_sentence(database: Database) -> None:
    save_trials(database, without_time())
    with pytest.raises(RecordError, match="Trial timeless is stored as no record may be"):
        save_trial(database, make_trial(trial_id="timeless"))


@pytest.mark.parametrize("kind", list(ExportFormat))
def test_every_export_has_it(kind: ExportFormat, tmp_path: Path, sqlite_url: str) -> None:
    with open_database(sqlite_url) as database:
        save_trials(database, [*SOUND, *without_time()])
    file = tmp_path / "exported"
    done = in_this_process(
        "export", "--format", kind.value, "--output", str(file), "--db", sqlite_url, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert file.stat().st_size > 0


@pytest.mark.parametrize("command", ["show timeless", "show summed --json", "reproduce timeless --script -"])
def test_a_command_says_which_it_is(command: str, tmp_path: Path, sqlite_url: str) -> None:
    with open_database(sqlite_url) as database:
        save_trials(database, without_time())
    said = in_this_process(*command.split(), "--db", sqlite_url, cwd=tmp_path)
    assert said.returncode == 2
    assert "stored as no record may be" in said.stderr


def test_the_command_takes_them_out(sqlite_url: str) -> None:
    with open_database(sqlite_url) as database:
        save_trials(database, [make_trial(trial_id="sound"), *without_time()])
    command = ["db", "remove-trials", "--impossible-samples", "--db", sqlite_url]
    assert CliRunner().invoke(app, [*command, "--impossible-moments"]).exit_code != 0
    done = CliRunner().invoke(app, [*command, "--yes"])
    assert done.output == f"3 trials taken out of {sqlite_url}.\n"
    with open_database(sqlite_url) as database:
        assert find_damage(database) == []
