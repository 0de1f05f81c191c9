"""The lines a pipe gets."""

from datetime import timedelta

import pytest

from compilewatch.db.records.trial import Status
from compilewatch.db.units import duration
from compilewatch.runner.output.progress import LineProgress
from compilewatch.runner.output.time_left import TimeLeft
from compilewatch.runner.plan.durations import Durations
from tests.builders import START, make_trial


def test_a_pipe_gets_one_line_per_trial(capsys: pytest.CaptureFixture[str]) -> None:
    trial = make_trial(started_at=START, ended_at=START + timedelta(seconds=7))
    took = duration(7e9)
    case = (trial.workload.name, trial.strategy.name)
    with LineProgress(2, TimeLeft([case, case], Durations({}))) as progress:
        progress.trial_started(1, *case, None)
        progress.phase("first_call")
        progress.trial_finished(trial)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"[1/2] {case[0]} · {case[1]}: ")
    assert captured.err.rstrip().endswith(f"(about {took} left)")
    assert captured.err.count("\n") == 1
    assert trial.status is Status.OK


def test_builds_that_take_turns_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    trial = make_trial(started_at=START, ended_at=START + timedelta(seconds=7))
    case = (trial.workload.name, trial.strategy.name)
    with LineProgress(1, TimeLeft([case], Durations({}))) as progress:
        progress.trial_started(1, *case, "torch-2.12.1")
        progress.trial_finished(trial)
    assert f"{case[0]} · {case[1]} · torch-2.12.1: " in capsys.readouterr().err
