"""The expected time left, and the lines a pipe gets."""

from datetime import timedelta

import pytest

from db.records.trial import Status
from db.units import duration
from runner.cli.output.progress import LineProgress, TimeLeft
from runner.plan.durations import Durations
from tests.builders import START, make_trial


def test_a_case_seen_before_costs_its_own_median() -> None:
    left = TimeLeft([("mlp", "eager")] * 3 + [("mlp", "default")] * 2, Durations({}))
    left.finished(("mlp", "eager"), 2.0)
    left.finished(("mlp", "default"), 10.0)
    assert left.seconds() == 2 * 2.0 + 1 * 10.0
    history = Durations({("mlp", "eager"): 3.0, ("mlp", "default"): 9.0})
    assert TimeLeft([("mlp", "eager"), ("cnn", "default")], history).seconds() == 12.0


def test_a_pipe_gets_one_line_per_trial(capsys: pytest.CaptureFixture[str]) -> None:
    trial = make_trial(started_at=START, ended_at=START + timedelta(seconds=7))
    took = duration(7e9)
    case = (trial.workload.name, trial.strategy.name)
    with LineProgress(2, TimeLeft([case, case], Durations({}))) as progress:
        progress.trial_started(1, *case)
        progress.phase("first_call")
        progress.trial_finished(trial)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"[1/2] {case[0]} · {case[1]}: ")
    assert captured.err.rstrip().endswith(f"(about {took} left)")
    assert captured.err.count("\n") == 1
    assert trial.status is Status.OK
