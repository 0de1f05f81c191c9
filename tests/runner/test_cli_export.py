"""`export` as it is typed: its filters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from db.records import Task
from db.session import open_database
from db.store import save_trials
from runner.cli.app import app
from runner.cli.front import exit_code_of
from tests.builders import make_imported, make_trial, make_workload


@pytest.fixture
def url(sqlite_url: str) -> str:
    with open_database(sqlite_url) as database:
        trials = [
            make_trial(trial_id="one"),
            make_trial(trial_id="two", workload=make_workload("mlp", task=Task.TRAINING)),
            make_imported(trial_id="three", run_id="imported"),
        ]
        save_trials(database, trials)
    return sqlite_url


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--task", "training"), {"two"}),
        (("--task", "training", "--task", "inference"), {"one", "two", "three"}),
        (("--source", "imported"), {"three"}),
        (("--source", "measured", "--task", "inference"), {"one"}),
    ],
)
def test_task_and_source_choose_what_goes_out(
    url: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, options: tuple[str, ...], expected: set[str]
) -> None:
    path = tmp_path / "out.jsonl"
    assert exit_code_of(app, ["export", *options, "--output", str(path), "--db", url]) == 0
    lines = path.read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["trial_id"] for line in lines} == expected


@pytest.mark.parametrize(
    ("option", "choices"),
    [("--task", "'inference', 'training', 'function'"), ("--source", "'measured', 'imported'")],
)
def test_a_task_or_source_that_is_none_is_one_sentence(
    url: str, capsys: pytest.CaptureFixture[str], option: str, choices: str
) -> None:
    assert exit_code_of(app, ["export", option, "none", "--db", url]) == 2
    sentence, next_step = capsys.readouterr().err.splitlines()
    assert sentence == f"compilewatch: Invalid value for '{option}': 'none' is not one of {choices}."
    assert next_step == "  Try `compilewatch export --help`."
