"""The lines a pipe gets."""

import time
from datetime import timedelta

import pytest

from compilewatch.db.records.trial import Status
from compilewatch.db.units import duration
from compilewatch.runner.output.progress import LineProgress, TimeLeft, UnderWay
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
    first, line = captured.err.splitlines()
    assert first == "The first trial ..."
    assert line.startswith(f"[1/2] {case[0]} · {case[1]}: ")
    assert line.endswith(f"(about {took} left)")
    assert trial.status is Status.OK


def test_builds_that_take_turns_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    trial = make_trial(started_at=START, ended_at=START + timedelta(seconds=7))
    case = (trial.workload.name, trial.strategy.name)
    with LineProgress(1, TimeLeft([case], Durations({}))) as progress:
        progress.trial_started(1, *case, "torch-2.12.1")
        progress.trial_finished(trial)
    assert f"{case[0]} · {case[1]} · torch-2.12.1: " in capsys.readouterr().err


def test_what_takes_long_is_not_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with UnderWay("asking the interpreter for its torch", silent_s=0.05) as under_way:
        time.sleep(0.3)
        under_way.now("compiling")
        time.sleep(0.3)
    said = capsys.readouterr()
    first, *further = said.err.splitlines()
    assert said.out == ""
    assert first == "Asking the interpreter for its torch ..."
    assert further[0].startswith("asking the interpreter for its torch, ")
    assert further[-1].startswith("compiling, ")


def test_the_control_series_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    with LineProgress(1, TimeLeft([("a", "b")], Durations({}), canaries=True)):
        pass
    assert capsys.readouterr().err == "The machine's control series ...\n"
