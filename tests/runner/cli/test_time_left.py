"""The expected time left."""

import pytest

from compilewatch.runner.output.progress import TimeLeft
from compilewatch.runner.plan.durations import Durations


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
