"""The lines a pipe gets."""

import contextlib
import io
import sys
from datetime import timedelta

import pytest

from compilewatch.db.records.trial import Status
from compilewatch.db.units import duration
from compilewatch.runner.cli import app as app_module
from compilewatch.runner.cli import front
from compilewatch.runner.output.progress import LineProgress, TimeLeft, UnderWay
from compilewatch.runner.plan.durations import Durations
from tests.builders import START, make_trial
from tests.runner.fleet_processes import wait_until

SILENT_S = 60
"""Longer than a busy machine lets a thread wait."""


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
    said = ""

    def is_said(text: str) -> bool:
        nonlocal said
        said += capsys.readouterr().err
        return text in said

    with UnderWay("asking the interpreter for its torch", silent_s=0.05) as under_way:
        wait_until(lambda: is_said("\nasking the interpreter for its torch, "), SILENT_S, "it is silent")
        under_way.now("compiling")
        wait_until(lambda: is_said("\ncompiling, "), SILENT_S, "it is silent")
    assert said.startswith("Asking the interpreter for its torch ...\n")


WHO_NOBODY_WAITS_FOR = {"schedule", "request", "worker"}
"""Services, whose log is theirs, and what only asks them."""


def test_every_command_that_starts_processes_is_known_to_measure() -> None:
    places = app_module._PLACES
    started = {name for name, place in places.items() if ".cli.measure." in place} | {"gate"}
    assert started - WHO_NOBODY_WAITS_FOR == app_module.MEASURING


@pytest.mark.parametrize("name", sorted(app_module.MEASURING))
def test_no_command_that_measures_is_silent_for_long(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its import takes a while, and what it waits for afterwards says nothing."""
    monkeypatch.setattr(front, "FIRST_S", 0.1)
    monkeypatch.setattr(front, "LONGEST_S", 0.2)

    stream = io.StringIO()

    def measures(_arguments: object, **_options: object) -> int:
        wait_until(lambda: "begins" in stream.getvalue(), SILENT_S, "it is silent")
        print("a figure")
        wait_until(lambda: " s so far\n" in stream.getvalue(), SILENT_S, "it is silent")
        return 0

    monkeypatch.setattr(app_module, "app", measures)
    with contextlib.redirect_stderr(stream):
        with pytest.raises(SystemExit, match="0"):
            front.main([name])
        assert sys.stderr is stream
    assert capsys.readouterr().out == "a figure\n"
    first, *further = stream.getvalue().splitlines()
    assert first == f"compilewatch {name}: begins"
    assert further[-1].endswith(" s so far")


def test_whose_help_is_wanted_or_what_is_only_read_says_nothing_of_itself() -> None:
    assert front.command_of(["run", "--help"], app_module.MEASURING) is None
    assert front.command_of(["show", "X"], app_module.MEASURING) is None
    assert front.command_of(["--version"], app_module.MEASURING) is None
    assert front.command_of(["gate", "--confirm", "run"], app_module.MEASURING) == "gate"


def test_the_control_series_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    with LineProgress(1, TimeLeft([("a", "b")], Durations({}), canaries=True)):
        pass
    assert capsys.readouterr().err == "The machine's control series ...\n"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_case_seen_before_costs_its_own_median() -> None:
    cases = [("mlp", "eager")] * 3 + [("mlp", "default")] * 2
    left = TimeLeft(cases, Durations({}), monotonic=Clock())
    left.finished(("mlp", "eager"), 2.0)
    left.finished(("mlp", "default"), 10.0)
    assert left.seconds() == 2 * 2.0 + 1 * 10.0
    history = Durations({("mlp", "eager"): 3.0, ("mlp", "default"): 9.0})
    assert TimeLeft([("mlp", "eager"), ("cnn", "default")], history).seconds() == 12.0


def test_the_first_trial_of_all_which_reads_torch_from_the_disk_is_soon_forgotten() -> None:
    durations = Durations({})
    durations.note(("mlp", "eager"), 30.0)
    assert durations.expected_s(("mlp", "eager")) == 30.0
    durations.note(("mlp", "eager"), 8.0)
    assert durations.expected_s(("mlp", "eager")) == 8.0


def test_the_history_is_read_at_the_pace_of_today() -> None:
    durations = Durations({("mlp", "eager"): 4.0, ("mlp", "default"): 20.0})
    durations.note(("mlp", "eager"), 12.0)
    assert durations.expected_s(("mlp", "default")) == 60.0


@pytest.mark.parametrize("canaries", [False, True])
def test_from_the_second_trial_on_the_time_left_is_right_within_a_third(canaries: bool) -> None:
    """A cold first trial, a second between two trials, and a control series before and after."""
    clock, case = Clock(), ("mlp", "default")
    left = TimeLeft([case] * 6, Durations({}), canaries=canaries, monotonic=clock)
    clock.now += 12.0 if canaries else 0.0
    took = [25.0, 9.0, 10.0, 9.5, 11.0, 10.0]
    for number, seconds in enumerate(took, start=1):
        left.started()
        clock.now += seconds + 1.0
        left.finished(case, seconds)
        true = sum(took[number:]) + len(took[number:]) + (12.0 if canaries else 0.0)
        if number >= 2:
            assert left.seconds() == pytest.approx(true, rel=1 / 3)
